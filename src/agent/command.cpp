#include "agent/command.hpp"

#include <algorithm>
#include <cstring>

namespace sandboxd::agent {

namespace {

using protocol::tag;

constexpr std::size_t most_arguments = 256 * 1024;
constexpr std::size_t most_variables = 4096;

/// What a long script is run by: a shell that reads it from descriptor 9 (which the script itself closes
/// first), so that stdin, $0 and $@ are as with `sh -c SCRIPT`.
char shell_name[] = "sh";
char shell_option[] = "-c";
char shell_reader[] = ". /proc/self/fd/9";

template <class T>
bool set(T& to, std::optional<T> value) {
    if (value) {
        to = *value;
    }
    return value.has_value();
}

bool read_option(const protocol::field& one, start_options& out) {
    switch (one.id) {
    case tag::run_id:
        out.run_id = one.value;
        return one.value.size() == protocol::run_id_size;
    case tag::mode: {
        const auto mode = one.u8();
        if (!mode || *mode < 1 || *mode > static_cast<std::uint8_t>(protocol::start_mode::terminal)) {
            return false;
        }
        out.mode = static_cast<protocol::start_mode>(*mode);
        return true;
    }
    case tag::open_stdin:
        out.open_stdin = true;
        return true;
    case tag::operation:
        if (const auto value = one.u16()) {
            out.operation = static_cast<protocol::file_operation>(*value);
        }
        return out.operation.has_value();
    case tag::rows:
        return set(out.rows, one.u16());
    case tag::columns:
        return set(out.columns, one.u16());
    case tag::timeout_ms:
        out.timeout_ms = one.u64();
        return out.timeout_ms.has_value();
    case tag::keep_bytes:
        return set(out.keep_bytes, one.u64());
    case tag::limit_bytes:
        return set(out.limit_bytes, one.u64());
    case tag::grace_ms:
        return set(out.grace_ms, one.u32());
    case tag::user_id:
        out.user = one.u32();
        return out.user.has_value();
    case tag::group_id:
        out.group = one.u32();
        return out.group.has_value();
    default:
        return true;
    }
}

std::string_view name_of(const char* variable) {
    return {variable, static_cast<std::size_t>(std::strchr(variable, '=') - variable)};
}

/// Lays the start's variables over the base: the last of a name wins.
void merge(const std::vector<char*>& fresh, char* const* base, std::vector<char*>& out) {
    const auto overridden = [&](const char* variable, std::size_t from) {
        const auto name = name_of(variable);
        return std::any_of(fresh.begin() + static_cast<std::ptrdiff_t>(from), fresh.end(),
                           [&](const char* other) { return name_of(other) == name; });
    };
    for (; *base != nullptr; ++base) {
        if (std::strchr(*base, '=') != nullptr && !overridden(*base, 0)) {
            out.push_back(*base);
        }
    }
    for (std::size_t i = 0; i < fresh.size(); ++i) {
        if (!overridden(fresh[i], i + 1)) {
            out.push_back(fresh[i]);
        }
    }
    out.push_back(nullptr);
}

} // namespace

std::optional<start_options> read_start_options(std::string_view payload) {
    start_options out;
    protocol::field_reader reader(payload);
    protocol::field one;
    while (reader.next(one)) {
        if (!read_option(one, out)) {
            return std::nullopt;
        }
    }
    if (reader.malformed()) {
        return std::nullopt;
    }
    return out;
}

const char* build_command(std::span<char> payload, char* const* base, command& out) {
    std::vector<char*> ends;
    std::vector<char*> fresh;
    bool scripted = false;
    protocol::field_reader reader({payload.data(), payload.size()});
    protocol::field one;
    while (reader.next(one)) {
        char* const text = payload.data() + (one.value.data() - payload.data());
        const bool textual = one.id == tag::argument || one.id == tag::variable || one.id == tag::directory ||
                             one.id == tag::script;
        if (textual && one.value.find('\0') != std::string_view::npos) {
            return "an argument, variable, directory or script holds a NUL byte";
        }
        switch (one.id) {
        case tag::argument:
            out.arguments.push_back(text);
            break;
        case tag::variable:
            if (one.value.find('=') == std::string_view::npos || one.value.front() == '=') {
                return "an environment variable has no name";
            }
            fresh.push_back(text);
            break;
        case tag::directory:
            out.directory = text;
            break;
        case tag::script:
            out.script = one.value;
            scripted = true;
            break;
        case tag::user_id:
            out.user = one.u32();
            break;
        case tag::group_id:
            out.group = one.u32();
            break;
        default:
            continue;
        }
        if (out.arguments.size() > most_arguments || fresh.size() > most_variables) {
            return "too many arguments or variables";
        }
        ends.push_back(text + one.value.size());
    }
    for (char* const end : ends) {
        *end = '\0';
    }
    if (scripted) {
        char* const text = payload.data() + (out.script.data() - payload.data());
        const bool fits = out.script.size() <= longest_string;
        out.arguments = {shell_name, shell_option, fits ? text : shell_reader};
        out.script = fits ? std::string_view() : out.script;
        out.shell = true;
    }
    if (out.arguments.empty()) {
        return "there is no command";
    }
    out.arguments.push_back(nullptr);
    merge(fresh, base, out.variables);
    fresh.push_back(nullptr);
    out.has_home = find_variable(fresh.data(), "HOME") != nullptr;
    return nullptr;
}

const char* find_variable(char* const* environment, std::string_view name) {
    for (; *environment != nullptr; ++environment) {
        if (std::strncmp(*environment, name.data(), name.size()) == 0 && (*environment)[name.size()] == '=') {
            return *environment + name.size() + 1;
        }
    }
    return nullptr;
}

} // namespace sandboxd::agent
