#pragma once

#include "wire/model.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sandboxd::wire {

// Answers of the operations on files (contract 1.5.4). Names and lines are bytes: decoded while writing.

/// Contract 1.2.4. A listing and a search tell no time.
struct file_entry {
    std::string name;
    std::string path;
    bool is_dir = false;
    std::optional<std::uint64_t> size;
    std::optional<std::string> modified_at; ///< ISO 8601

    static constexpr auto fields() {
        using m = file_entry;
        return std::tuple{optional("name", &m::name), optional("path", &m::path),
                          optional("is_dir", &m::is_dir), optional("size", &m::size),
                          optional("modified_at", &m::modified_at)};
    }
};

struct read_answer {
    std::string content;

    static constexpr auto fields() { return std::tuple{optional("content", &read_answer::content)}; }
};

struct read_bytes_answer {
    std::string content_b64;

    static constexpr auto fields() {
        return std::tuple{optional("content_b64", &read_bytes_answer::content_b64)};
    }
};

struct write_answer {
    std::optional<std::string> path;
    std::optional<std::string> error;

    static constexpr auto fields() {
        return std::tuple{optional("path", &write_answer::path), optional("error", &write_answer::error)};
    }
};

struct edit_answer {
    std::optional<std::string> path;
    std::optional<std::string> error;
    std::optional<std::int64_t> occurrences;

    static constexpr auto fields() {
        using m = edit_answer;
        return std::tuple{optional("path", &m::path), optional("error", &m::error),
                          optional("occurrences", &m::occurrences)};
    }
};

struct exists_answer {
    bool exists = false;

    static constexpr auto fields() { return std::tuple{optional("exists", &exists_answer::exists)}; }
};

struct grep_match {
    std::string path;
    std::uint64_t line_number = 0;
    std::string line;

    static constexpr auto fields() {
        using m = grep_match;
        return std::tuple{optional("path", &m::path), optional("line_number", &m::line_number),
                          optional("line", &m::line)};
    }
};

struct grep_answer {
    std::vector<grep_match> matches;
    std::optional<std::string> error;
    bool truncated = false; ///< ours ("Decided" 11): there are more

    static constexpr auto fields() {
        using m = grep_answer;
        return std::tuple{optional("matches", &m::matches), optional("error", &m::error),
                          optional("truncated", &m::truncated)};
    }
};

} // namespace sandboxd::wire
