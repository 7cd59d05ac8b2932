#pragma once

#include "sandboxd/sandbox.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sandboxd::session {

// What the file operations say (contract 3.3.1, 3.5, 3.6). Paths are shown as the client gave them.

/// Contract 3.1.1: an absolute path as it is, another joined to the work directory (without `.` and repeated
/// slashes, with `..`).
[[nodiscard]] std::string joined_path(std::string_view work_dir, std::string_view path);

/// Contract 2.11: `read` went wrong by what it shows.
[[nodiscard]] bool is_error_text(std::string_view content);

/// What `read` shows for a file that can't be had.
[[nodiscard]] std::string read_failure(std::string_view path, const error& why);
/// `[Error: File ... read limit. ...]`
[[nodiscard]] std::string over_limit_text(std::optional<std::uint64_t> size, std::int64_t most);

[[nodiscard]] std::string write_failure(const error& why);
/// What `grep` says instead of matches; names the path where that is what is wrong.
[[nodiscard]] std::string grep_failure(std::string_view path, const error& why);
/// A path that can't be one of a file: a NUL or nothing in it.
[[nodiscard]] std::optional<error> path_fault(std::string_view path);

/// What is wrong with an edit that was not made: for the client, and for the log, which holds no contents.
struct edit_complaint {
    std::string shown;
    std::string logged;
};
[[nodiscard]] edit_complaint edit_failure(std::string_view path, const error& why);
[[nodiscard]] edit_complaint text_absent(std::string_view old_text);
[[nodiscard]] edit_complaint text_ambiguous(std::string_view old_text, std::uint64_t occurrences);

} // namespace sandboxd::session
