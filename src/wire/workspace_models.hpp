#pragma once

#include "wire/file_answers.hpp"
#include "wire/model.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sandboxd::wire {

// The models of `files/*` and of the archive (contract N6); rows and contents: file_answers.hpp.

/// POST .../files/realpath
struct realpath_answer {
    std::string path;

    static constexpr auto fields() { return std::tuple{optional("path", &realpath_answer::path)}; }
};

/// The object of a 400 or 404 of `files/*` (contract N4.5).
struct file_error {
    std::string error;
    std::string message;

    static constexpr auto fields() {
        return std::tuple{optional("error", &file_error::error), optional("message", &file_error::message)};
    }
};

struct file_error_answer {
    file_error detail;

    static constexpr auto fields() { return std::tuple{optional("detail", &file_error_answer::detail)}; }
};

inline constexpr std::int64_t deepest_tree = 64;
inline constexpr std::int64_t largest_tree = 100'000;
inline constexpr std::size_t most_trees = 100;

/// POST /workspaces/{session_id}/tree
struct tree_body {
    std::string path = ".";
    std::int64_t max_depth = 6;
    std::int64_t max_entries = 2000;

    static constexpr auto fields() {
        using m = tree_body;
        return std::tuple{optional("path", &m::path),
                          optional("max_depth", &m::max_depth, {.at_least = 1, .at_most = deepest_tree}),
                          optional("max_entries", &m::max_entries, {.at_least = 1, .at_most = largest_tree})};
    }
};

/// POST /workspaces/trees
struct trees_body {
    std::vector<std::string> sessions;
    std::string path = ".";
    std::int64_t max_depth = 6;
    std::int64_t max_entries = 2000; ///< per workspace

    static constexpr auto fields() {
        using m = trees_body;
        return std::tuple{
            required("sessions", &m::sessions,
                     {.min_items = 1, .max_items = most_trees, .item_pattern = &session_id_pattern}),
            optional("path", &m::path),
            optional("max_depth", &m::max_depth, {.at_least = 1, .at_most = deepest_tree}),
            optional("max_entries", &m::max_entries, {.at_least = 1, .at_most = largest_tree})};
    }
};

struct tree_answer {
    std::vector<file_entry> entries;
    bool truncated = false;

    static constexpr auto fields() {
        return std::tuple{optional("entries", &tree_answer::entries),
                          optional("truncated", &tree_answer::truncated)};
    }
};

/// One of `trees`: either `tree`, or what its own request would have been told.
struct tree_result {
    std::string session_id;
    std::optional<tree_answer> tree;
    std::optional<std::string> error;
    std::optional<std::int64_t> status_code;

    static constexpr auto fields() {
        using m = tree_result;
        return std::tuple{optional("session_id", &m::session_id), optional("tree", &m::tree),
                          optional("error", &m::error), optional("status_code", &m::status_code)};
    }
};

struct trees_answer {
    std::vector<tree_result> results;

    static constexpr auto fields() { return std::tuple{optional("results", &trees_answer::results)}; }
};

} // namespace sandboxd::wire
