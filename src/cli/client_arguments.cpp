#include "cli/client_arguments.hpp"

#include "cli/arguments.hpp"
#include "client/url.hpp"
#include "config/text.hpp"

#include <algorithm>

namespace sandboxd::cli {

using std::string;
using std::string_view;

namespace {

usage_error wrong(const command_info& command, string text) {
    return {"sandboxd: " + std::move(text) + " See sandboxd " + string(command.name) + " --help."};
}

std::vector<flag_info> flags_of(const command_info& command) {
    std::vector<flag_info> all(command.flags);
    all.insert(all.end(), common_flags().begin(), common_flags().end());
    return all;
}

/// Takes one flag, and its value from `rest` where it stands by itself.
std::optional<usage_error> take_flag(client_call& into, string_view word,
                                     std::span<const string_view>& rest) {
    const auto& command = *into.command;
    const auto equals = word.find('=');
    string_view name = word.substr(0, equals);
    if (name == "-h") {
        name = "--help";
    } else if (name == "-r") {
        name = "--recursive";
    } else if (name == "-f") {
        name = "--follow";
    }
    const auto all = flags_of(command);
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.name == name; });
    if (found == all.end()) {
        std::vector<string_view> names;
        for (const auto& one : all) {
            names.push_back(one.name);
        }
        return wrong(command, string(command.name) + " has no option " +
                                  config::in_quotes(word.substr(0, equals)) + "." +
                                  config::suggestion(name, names));
    }
    if (found->placeholder.empty()) {
        if (equals != string_view::npos) {
            return wrong(command, string(name) + " takes no value.");
        }
        into.help = into.help || name == "--help";
        into.given[string(name)];
        return std::nullopt;
    }
    string_view value = equals != string_view::npos ? word.substr(equals + 1) : string_view();
    if (equals == string_view::npos) {
        if (rest.empty()) {
            return wrong(command, string(name) + " needs a value.");
        }
        value = rest.front();
        rest = rest.subspan(1);
    }
    if (value.empty()) {
        return wrong(command, string(name) + " needs a value.");
    }
    into.given[string(name)].emplace_back(value);
    return std::nullopt;
}

} // namespace

std::optional<string> client_call::value(string_view flag) const {
    const auto found = given.find(flag);
    return found == given.end() || found->second.empty() ? std::nullopt : std::optional(found->second.back());
}

std::variant<client_call, usage_error> parse_client(const command_info& command,
                                                    std::span<const string_view> words) {
    client_call made;
    made.command = &command;
    bool only_words = false;
    while (!words.empty()) {
        const string_view word = words.front();
        words = words.subspan(1);
        if (!only_words && word == "--") {
            only_words = true;
        } else if (!only_words && word.size() > 1 && word.starts_with('-')) {
            if (auto fault = take_flag(made, word, words)) {
                return *fault;
            }
        } else {
            made.words.emplace_back(word);
            // What follows the session is the program's, but for a "--" before it.
            if (command.takes_program && made.words.size() == 2) {
                only_words = true;
            }
        }
    }
    if (made.help) {
        return made;
    }
    if (made.words.size() < command.least_words) {
        return wrong(command, string(command.name) + " needs " + string(command.usage) + ".");
    }
    if (made.words.size() > command.most_words) {
        return wrong(command, string(command.name) + " can't make anything of " +
                                  config::in_quotes(made.words[command.most_words]) + ".");
    }
    return made;
}

place parse_place(string_view text) {
    const auto colon = text.find(':');
    const auto before = text.substr(0, colon);
    if (colon == string_view::npos || !client::is_session_id(before)) {
        return {.session = std::nullopt, .path = string(text), .has_path = true};
    }
    return {.session = string(before), .path = string(text.substr(colon + 1)), .has_path = true};
}

} // namespace sandboxd::cli
