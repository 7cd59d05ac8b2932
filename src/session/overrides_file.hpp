#pragma once

#include "sandboxd/error.hpp"

#include <optional>
#include <string>

namespace sandboxd::session::blocking {

struct overrides_file {
    std::string state; ///< tells one state of the file from another
    result<std::string> text;
};

/// The overrides file when it is in another state than `seen`; nothing when it is not, or when there is none.
/// Blocks. At most 1 MiB is read; errc::io, errc::invalid.
[[nodiscard]] std::optional<overrides_file> read_overrides(const std::string& path, const std::string& seen);

} // namespace sandboxd::session::blocking
