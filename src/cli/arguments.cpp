#include "cli/arguments.hpp"

#include "config/text.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace sandboxd::cli {
namespace {

using std::string;
using std::string_view;

constexpr std::array<string_view, 3> command_names{"serve", "config", "prepare"};
constexpr std::array<string_view, 5> flag_names{"--help", "--version", "--config", "--listen", "--backend"};

usage_error wrong(string text) {
    return {"sandboxd: " + std::move(text) + " See sandboxd --help."};
}

/// What was read so far.
struct reading {
    std::span<const string_view> rest;
    options with;
    std::optional<string_view> command_name;
    std::optional<command> decided;
};

void take_listen(reading& in, string_view value) {
    auto where = parse_listen(value);
    if (!where) {
        in.decided = wrong("--listen " + config::in_quotes(value) +
                           " is not HOST:PORT, such as 127.0.0.1:8080 or [::1]:8080.");
        return;
    }
    in.with.given.host = std::move(where->host);
    in.with.given.port = where->port;
}

void take_value(reading& in, string_view name, string_view value) {
    if (value.empty()) {
        in.decided = wrong(string(name) + " needs a value.");
    } else if (name == "--config") {
        in.with.config_file = value;
    } else if (name == "--listen") {
        take_listen(in, value);
    } else {
        in.with.given.backend = value;
    }
}

void take_flag(reading& in, string_view word) {
    const auto equals = word.find('=');
    const string_view name = word.substr(0, equals);
    if (word == "--help" || word == "-h") {
        in.decided = show_help{};
        return;
    }
    if (word == "--version") {
        in.decided = show_version{};
        return;
    }
    if (name == "--help" || name == "--version") {
        in.decided = wrong(string(name) + " takes no value.");
        return;
    }
    if (std::find(flag_names.begin(), flag_names.end(), name) == flag_names.end()) {
        in.decided = wrong("there is no option " + config::in_quotes(name) + "." +
                           config::suggestion(name, flag_names));
        return;
    }
    if (equals != string_view::npos) {
        take_value(in, name, word.substr(equals + 1));
        return;
    }
    if (in.rest.empty()) {
        in.decided = wrong(string(name) + " needs a value.");
        return;
    }
    take_value(in, name, in.rest.front());
    in.rest = in.rest.subspan(1);
}

void take_command(reading& in, string_view word) {
    if (in.command_name) {
        in.decided = wrong("one command at a time: " + config::in_quotes(*in.command_name) + " or " +
                           config::in_quotes(word) + ".");
    } else if (find_client_command(word) != nullptr) {
        in.decided = wrong(string(word) + " comes first, its options behind it.");
    } else if (std::find(command_names.begin(), command_names.end(), word) == command_names.end()) {
        auto names = client_command_names();
        names.insert(names.end(), command_names.begin(), command_names.end());
        in.decided =
            wrong("there is no command " + config::in_quotes(word) + "." + config::suggestion(word, names));
    } else {
        in.command_name = word;
    }
}

} // namespace

command parse(std::span<const string_view> arguments) {
    if (const auto* client = arguments.empty() ? nullptr : find_client_command(arguments.front())) {
        auto call = parse_client(*client, arguments.subspan(1));
        if (auto* fault = std::get_if<usage_error>(&call)) {
            return *fault;
        }
        return std::get<client_call>(std::move(call));
    }
    reading in{arguments, {}, {}, {}};
    while (!in.rest.empty() && !in.decided) {
        const string_view word = in.rest.front();
        in.rest = in.rest.subspan(1);
        if (word.starts_with('-')) {
            take_flag(in, word);
        } else {
            take_command(in, word);
        }
    }
    if (in.decided) {
        return *in.decided;
    }
    if (in.command_name == "config") {
        return show_config{std::move(in.with)};
    }
    if (in.command_name == "prepare") {
        return prepare{std::move(in.with)};
    }
    return serve{std::move(in.with)};
}

command parse(int argc, const char* const* argv) {
    const std::vector<string_view> words(argv + std::min(argc, 1), argv + std::max(argc, 0));
    return parse(words);
}

std::optional<endpoint> parse_listen(string_view text) {
    const auto colon = text.rfind(':');
    if (colon == string_view::npos) {
        return std::nullopt;
    }
    string_view host = text.substr(0, colon);
    if (host.starts_with('[') && host.ends_with(']')) {
        host = host.substr(1, host.size() - 2);
        if (host.find(':') == string_view::npos) {
            return std::nullopt;
        }
    } else if (host.find(':') != string_view::npos) {
        return std::nullopt;
    }
    const string_view digits = text.substr(colon + 1);
    constexpr std::size_t longest = 5;
    constexpr std::int64_t last = 65'535;
    if (digits.empty() || digits.size() > longest ||
        digits.find_first_not_of("0123456789") != string_view::npos ||
        host.find_first_of("[] /\t") != string_view::npos) {
        return std::nullopt;
    }
    const auto port = config::parse_integer(digits);
    if (!port || *port > last) {
        return std::nullopt;
    }
    return endpoint{string(host), *port};
}

} // namespace sandboxd::cli
