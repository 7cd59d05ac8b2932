#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sandboxd::agent {

/// A line of /etc/passwd, as far as it is needed. Views into the text.
struct passwd_entry {
    std::string_view name;
    gid_t group = 0;
    std::string_view home;
};

/// The first line with this uid in the text of a passwd file. Broken lines are passed over.
[[nodiscard]] std::optional<passwd_entry> find_user(std::string_view passwd, uid_t user);

/// The groups that list `name` as a member in the text of a group file, at most 1024.
[[nodiscard]] std::vector<gid_t> groups_of(std::string_view group, std::string_view name);

/// The beginning (at most 1 MiB) of a regular file; empty when there is none. Never waits on a FIFO or
/// device.
[[nodiscard]] std::string read_small_file(const char* path);

} // namespace sandboxd::agent
