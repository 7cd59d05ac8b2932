#pragma once

#include "hostfs/blocking/walk.hpp"
#include "hostfs/paths.hpp"
#include "sandboxd/sandbox.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sandboxd::hostfs::blocking {

// The seven operations of `files/*` (contract N5), each on one path of a workspace.

/// Entries of one listing, and bytes of their paths and names; a larger directory is left to the sandbox.
inline constexpr std::size_t most_listed = 200'000;
inline constexpr std::size_t most_listed_bytes = std::size_t{32} * 1024 * 1024;

/// N5.1: a regular file of at most `max_bytes`.
[[nodiscard]] native_result<std::string> read(const workspace& in, const native_path& path,
                                              std::uint64_t max_bytes, time_limit until);
/// N5.2. Missing parents are made, and made again when they are removed meanwhile.
[[nodiscard]] native_result<void> write(const workspace& in, const native_path& path,
                                        std::string_view content, time_limit until);
/// N5.3. `size` is absent for a directory.
[[nodiscard]] native_result<file_entry> stat(const workspace& in, const native_path& path);
/// N5.3 of what is there.
[[nodiscard]] file_entry entry_of(const native_path& path, bool is_directory, std::uint64_t size);
/// N5.4: all entries by name, or a refusal when one is neither file nor directory, or its name not UTF-8.
[[nodiscard]] native_result<std::vector<file_entry>> list(const workspace& in, const native_path& path,
                                                          time_limit until);
/// The same of a directory that has been found, by a handle (O_PATH) to it.
[[nodiscard]] native_result<std::vector<file_entry>> list_opened(int handle, const native_path& path,
                                                                 time_limit until);
/// N5.5.
[[nodiscard]] native_result<std::string> realpath(const workspace& in, const native_path& path);
/// N5.6.
[[nodiscard]] native_result<void> mkdir(const workspace& in, const native_path& path, time_limit until);
/// N5.7.
[[nodiscard]] native_result<void> remove(const workspace& in, const native_path& path, time_limit until);

} // namespace sandboxd::hostfs::blocking
