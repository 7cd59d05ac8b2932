#pragma once

// hostfs: the host door to the files of a session, and what closed sessions left (design.md, "Two doors to
// files"). Works on descriptors below `<workspace_root>/<id>/workspace`, which a hostile sandbox changes
// meanwhile: nothing is checked by one name and used by another, no link is followed, no FIFO or device is
// opened. Texts and outcomes are pure; what touches the disk is in namespace blocking and runs on a worker
// thread. Owns nothing between calls; safe from any thread.

#include "hostfs/outcome.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace sandboxd::hostfs {

/// A path of a `files/*` request that passed the text rules.
struct native_path {
    std::string given;      ///< as sent
    std::string normalized; ///< absolute, without doubled and trailing slashes
    std::string relative;   ///< below the work directory, "" for it; no empty, "." or ".." component
};

/// Bytes of a path that a request may name: no command names one of more than 4095, and whoever sends longer
/// ones would have a worker, an answer and the log busy with them.
inline constexpr std::size_t longest_path = std::size_t{64} * 1024;

/// Contract N4.3. `work_dir` is absolute. refusal::ask_sandbox above longest_path.
[[nodiscard]] native_result<native_path> parse_native(std::string_view given, std::string_view work_dir);

/// Contract 7.3 with N7.3: what an archive route's path names below the workspace, "" for it; `.` and empty
/// components are gone. errc::invalid for a `..` component ("outside the workspace"), for a NUL and above
/// longest_path.
[[nodiscard]] result<std::string> parse_archive(std::string_view given, std::string_view work_dir);

/// Can `id` name a directory of a session? It holds no slash and no NUL and does not begin with a dot
/// (contract 1.2.1); asked again wherever an id becomes part of a path.
[[nodiscard]] bool is_plain_name(std::string_view id) noexcept;

/// The directory part and the last component of a relative path that is not empty.
struct split_path {
    std::string_view parent;
    std::string_view name;
};
[[nodiscard]] split_path split(std::string_view relative) noexcept;

} // namespace sandboxd::hostfs
