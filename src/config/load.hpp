#pragma once

// The settings: read from the environment, a file and the command line, checked, and explained. Everything
// here is a pure function of what it is given; host_facts is the only door to the host, so that tests bring
// their own.

#include "config/file.hpp"
#include "sandboxd/config.hpp"
#include "sandboxd/error.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sandboxd::config {

using environment = std::map<std::string, std::string, std::less<>>;

/// What the command line can set; it wins over environment and file.
struct flags {
    std::optional<std::string> host;
    std::optional<std::int64_t> port;
    std::optional<std::string> backend;
};

/// What a setting's value came from.
enum class source { fallback, environment, file, flag };

/// "default", "environment", "file", "flag".
[[nodiscard]] std::string_view name_of(source from) noexcept;

/// What loading needs to know about this host.
struct host_facts {
    bool is_root = false;
    std::int64_t cores = 1;
    std::string current_dir; ///< relative paths of settings start here
    /// The first `max_bytes` of a file; errc::io with a sentence when it can't be read.
    std::function<result<std::string>(const std::string& path, std::size_t max_bytes)> read_file;
};

/// This process's own facts.
[[nodiscard]] host_facts this_host();

/// This process's environment.
[[nodiscard]] environment this_environment();

/// Settings with where each came from, in the order of table().
struct loaded_settings {
    settings values;
    std::vector<source> sources;
    std::vector<std::string> notes; ///< sentences for a person: what was given and means nothing
};

/// Builds the settings: defaults, then the file, then the environment, then flags; then what depends on
/// several of them (contract 5.2, N2.1, design "Decided"). Variables named SANDBOXD_* that are no setting are
/// ignored (contract 5.1), with a note. The first problem is the error: errc::invalid, one line that names
/// the variable or the file's key and never holds a secret.
[[nodiscard]] result<loaded_settings> load(const environment& variables, const std::optional<file_text>& file,
                                           const flags& command_line, const host_facts& host);

/// Reads a configuration file whole (at most 1 MiB); errc::invalid with a sentence that names it.
[[nodiscard]] result<file_text> open_file(const std::string& path, const host_facts& host);

} // namespace sandboxd::config
