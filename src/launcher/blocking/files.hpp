#pragma once

#include "core/fd.hpp"
#include "sandboxd/error.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

/// Calls that block: for the launcher's worker processes and the worker pool, never for an I/O thread (kernel
/// files such as those of /proc and cgroups excepted). Failures are errc::io with the path in the message,
/// and errc::not_found where something is missing.
namespace sandboxd::launcher::blocking {

/// A regular file's bytes; errc::invalid when it is longer than `max`.
[[nodiscard]] result<std::string> read_file(const std::string& path, std::size_t max);
[[nodiscard]] result<std::string> read_file_at(int directory, const std::string& name, std::size_t max);
[[nodiscard]] result<std::string> read_descriptor(int fd, const std::string& name, std::size_t max);

/// Makes or replaces a file; readers see the old bytes or the new ones.
[[nodiscard]] result<void> write_file_at(int directory, const std::string& name, std::string_view bytes,
                                         unsigned mode);

/// A directory to stand on; close-on-exec.
[[nodiscard]] result<core::unique_fd> open_directory(const std::string& path);
[[nodiscard]] result<core::unique_fd> open_directory_at(int directory, const std::string& name);

/// Makes a directory and those above it where they are missing.
[[nodiscard]] result<void> make_directories(const std::string& path, unsigned mode);

/// Opens `path` with `root` as its "/": no "..", no symbolic link, absolute or not, leads out of it.
[[nodiscard]] result<core::unique_fd> open_in_root(int root, const std::string& path, int flags,
                                                   unsigned mode = 0);

/// Makes the directories of `path` below `root` that are missing, each with mode 0755 and this owner.
[[nodiscard]] result<core::unique_fd> make_directories_in_root(int root, std::string_view path, unsigned uid,
                                                               unsigned gid);

/// Names in a directory, without "." and "..".
[[nodiscard]] result<std::vector<std::string>> list_directory(int directory);

/// Removes a file or a whole tree, however deep; what is missing is removed. Follows no link. Nobody else may
/// write in the tree meanwhile.
[[nodiscard]] result<void> remove_tree(int directory, const std::string& name);

} // namespace sandboxd::launcher::blocking
