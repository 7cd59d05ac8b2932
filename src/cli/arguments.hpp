#pragma once

// The command line: what was asked for, and the texts for people. Pure functions; load_settings() in run.hpp
// is the only part that touches the host.

#include "cli/client_arguments.hpp"
#include "config/load.hpp"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace sandboxd::cli {

/// What `serve`, `config` and `prepare` share.
struct options {
    std::optional<std::string> config_file;
    config::flags given;
};

struct serve {
    options with;
}; ///< the default command
struct show_config {
    options with;
};
/// Makes the images of all runtimes ready, then ends (contract N10).
struct prepare {
    options with;
};
struct show_help {};
struct show_version {};

using command = std::variant<serve, show_config, prepare, show_help, show_version, usage_error, client_call>;

/// Exit statuses: a command line that makes no sense, settings that make none (contract 5.1).
inline constexpr int exit_usage = 2;
inline constexpr int exit_settings = 1;
/// `prepare` has other ones (contract N10.1).
inline constexpr int exit_prepare_settings = 2;
inline constexpr int exit_not_prepared = 1;
/// Plus the number of the signal that has ended the program's work.
inline constexpr int exit_by_signal = 128;

/// Reads `sandboxd [serve|config|prepare] [--config FILE] [--listen HOST:PORT] [--backend NAME] [--help]
/// [--version]`, without the program's name. Options may stand before or after the command, as `--name VALUE`
/// or `--name=VALUE`; of a repeated one the last counts. `--help` and `--version` win over everything right
/// of them. Unknown words are usage errors that suggest the nearest.
/// A command that is a client of a service (client_arguments.hpp) comes first and has options of its own.
[[nodiscard]] command parse(std::span<const std::string_view> arguments);
[[nodiscard]] command parse(int argc, const char* const* argv);

/// "127.0.0.1:8080", "[::1]:8080", "localhost:0", ":8080" (all interfaces). Nothing when it is none of these:
/// an IPv6 address needs its brackets.
struct endpoint {
    std::string host;
    std::int64_t port = 0;
    friend bool operator==(const endpoint&, const endpoint&) = default;
};
[[nodiscard]] std::optional<endpoint> parse_listen(std::string_view text);

} // namespace sandboxd::cli
