#pragma once

#include "sandboxd/error.hpp"

#include <string>
#include <sys/types.h>

namespace sandboxd::app {

struct account {
    uid_t uid = 0;
    gid_t gid = 0;
    std::string name;
};

/// Looks an account up by name or number. errc::invalid with a sentence that names the setting.
[[nodiscard]] result<account> find_account(const std::string& name);

/// Gives up root for good and becomes `to`, with only the capabilities that work on the workspace directories
/// needs (files in them belong to the sandboxes' own users): CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER. For the
/// whole process, so before any thread starts.
[[nodiscard]] result<void> become(const account& to);

} // namespace sandboxd::app
