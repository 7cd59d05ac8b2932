#pragma once

// The operations on files of a session (contract 3.3 to 3.11), a part of the registry.

#include "sandboxd/sandbox.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sandboxd::session {

/// Contract 3.3.
struct read_command {
    std::string path;
    std::int64_t offset = 0;   ///< lines, not negative
    std::int64_t limit = 2000; ///< lines, not 0
};

/// Contract 3.5: one of both.
struct write_answer {
    std::optional<std::string> path; ///< absolute
    std::optional<std::string> failure;
};

/// Contract 3.6.
struct edit_command {
    std::string path;
    std::string old_text;
    std::string new_text;
    bool replace_all = false;
};

struct edit_answer {
    std::optional<std::string> path; ///< absolute
    std::optional<std::string> failure;
    std::optional<std::int64_t> occurrences;
};

/// Contract 3.10; no path or an empty one means the work directory.
struct grep_command {
    std::string pattern;
    std::optional<std::string> path;
    std::optional<std::string> glob;
    bool ignore_hidden = true;
};

struct grep_answer {
    std::vector<grep_match> matches;
    std::optional<std::string> failure; ///< begins with `Error: `
    bool truncated = false;
};

/// Each heals the sandbox first, counts as activity and is logged at its end, as commands are; none takes a
/// place among max_running_commands. What fails inside the sandbox is an answer (contract 3.11). The errors
/// are those that become a status: not_found (no such session), start_failed, unsupported, unavailable, and
/// timeout when the operation outlasts the service's ceiling. Paths and patterns are as the client gave them.
class file_operations {
public:
    virtual ~file_operations() = default;

    /// The text to show: lines of the file, or what is wrong with it. Valid UTF-8.
    [[nodiscard]] virtual task<result<std::string>> read(std::string id, read_command command) = 0;

    /// The bytes; empty when they can't be had or are too many.
    [[nodiscard]] virtual task<result<std::string>> read_bytes(std::string id, std::string path) = 0;

    /// Writes and edits of one path wait for each other, whatever door they come through.
    [[nodiscard]] virtual task<result<write_answer>> write(std::string id, std::string path,
                                                           std::string content) = 0;
    [[nodiscard]] virtual task<result<edit_answer>> edit(std::string id, edit_command command) = 0;

    [[nodiscard]] virtual task<result<bool>> exists(std::string id, std::string path) = 0;

    /// Empty when the directory can't be listed.
    [[nodiscard]] virtual task<result<file_listing>> ls(std::string id, std::string path) = 0;
    [[nodiscard]] virtual task<result<file_listing>> glob(std::string id, glob_request command) = 0;
    [[nodiscard]] virtual task<result<grep_answer>> grep(std::string id, grep_command command) = 0;
};

} // namespace sandboxd::session
