#pragma once

#include "wire/model.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sandboxd::wire {

/// POST /sessions (contract 1.4.3).
struct open_body {
    std::optional<std::string> session_id;
    std::optional<std::string> runtime;
    std::optional<std::string> tenant;
    bool reuse = false;
    bool attach = false;

    static constexpr auto fields() {
        return std::tuple{optional("session_id", &open_body::session_id, {.pattern = &session_id_pattern}),
                          optional("runtime", &open_body::runtime),
                          optional("tenant", &open_body::tenant, {.pattern = &session_id_pattern}),
                          optional("reuse", &open_body::reuse), optional("attach", &open_body::attach)};
    }
};

/// POST .../exec (contract 1.5.4).
struct exec_body {
    std::string command;
    std::optional<std::int64_t> timeout_seconds; ///< any number: 0 and negative ones have meanings (3.2.2)

    static constexpr auto fields() {
        return std::tuple{required("command", &exec_body::command, {.no_nul = true}),
                          optional("timeout_seconds", &exec_body::timeout_seconds)};
    }
};

/// POST .../run (contract 1.5.5).
struct run_body {
    std::vector<std::string> argv;
    std::vector<std::pair<std::string, std::string>> env;
    std::optional<double> timeout_seconds;
    std::string run_id;

    static constexpr auto fields() {
        return std::tuple{required("argv", &run_body::argv, {.min_items = 1, .no_nul = true}),
                          optional("env", &run_body::env, {.no_nul = true}),
                          optional("timeout_seconds", &run_body::timeout_seconds, {.above = 0.0}),
                          required("run_id", &run_body::run_id, {.pattern = &run_id_pattern})};
    }
};

/// POST .../read
struct read_body {
    std::string path;
    std::int64_t offset = 0;
    std::int64_t limit = 2000;

    static constexpr auto fields() {
        return std::tuple{required("path", &read_body::path),
                          optional("offset", &read_body::offset, {.at_least = 0}),
                          optional("limit", &read_body::limit, {.at_least = 1})};
    }
};

/// POST .../read_bytes, .../exists, .../ls
struct path_body {
    std::string path;

    static constexpr auto fields() { return std::tuple{required("path", &path_body::path)}; }
};

/// POST .../write
struct write_body {
    std::string path;
    std::string content_b64;

    static constexpr auto fields() {
        return std::tuple{required("path", &write_body::path),
                          required("content_b64", &write_body::content_b64)};
    }
};

/// POST .../edit
struct edit_body {
    std::string path;
    std::string old_string;
    std::string new_string;
    bool replace_all = false;

    static constexpr auto fields() {
        return std::tuple{required("path", &edit_body::path), required("old_string", &edit_body::old_string),
                          required("new_string", &edit_body::new_string),
                          optional("replace_all", &edit_body::replace_all)};
    }
};

/// POST .../glob
struct glob_body {
    std::string pattern;
    std::string path = "/";

    static constexpr auto fields() {
        return std::tuple{required("pattern", &glob_body::pattern, {.no_nul = true}),
                          optional("path", &glob_body::path)};
    }
};

/// POST .../grep
struct grep_body {
    std::string pattern;
    std::optional<std::string> path;
    std::optional<std::string> glob;
    bool ignore_hidden = true;

    static constexpr auto fields() {
        return std::tuple{required("pattern", &grep_body::pattern, {.no_nul = true}),
                          optional("path", &grep_body::path),
                          optional("glob", &grep_body::glob, {.no_nul = true}),
                          optional("ignore_hidden", &grep_body::ignore_hidden)};
    }
};

} // namespace sandboxd::wire
