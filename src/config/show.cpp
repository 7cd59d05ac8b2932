// How settings are told to people: `sandboxd config` and docs/configuration.md (table.hpp).
#include "config/runtimes.hpp"
#include "config/table.hpp"
#include "config/text.hpp"

#include <fmt/format.h>

#include <type_traits>

namespace sandboxd::config {
namespace {

using std::string;

template <class T>
struct is_optional_type : std::false_type {};
template <class T>
struct is_optional_type<std::optional<T>> : std::true_type {};

string shown(const string& value) {
    return value;
}
string shown(std::int64_t value) {
    return std::to_string(value);
}
string shown(double value) {
    return number_text(value);
}
string shown(bool value) {
    return value ? "true" : "false";
}
string shown(const std::vector<runtime_entry>& value) {
    return runtimes_text(value);
}
string shown(const std::pair<std::uint32_t, std::uint32_t>& value) {
    return fmt::format("0x{:08X}-0x{:08X}", value.first, value.second);
}
template <class T>
string shown(const std::optional<T>& value) {
    return value ? shown(*value) : "(none)";
}

string name_of_type(const string&) {
    return "text";
}
string name_of_type(std::int64_t) {
    return "integer";
}
string name_of_type(double) {
    return "number";
}
string name_of_type(bool) {
    return "boolean";
}
string name_of_type(const std::vector<runtime_entry>&) {
    return "runtimes";
}
string name_of_type(const std::pair<std::uint32_t, std::uint32_t>&) {
    return "range of ids";
}
template <class T>
string name_of_type(const std::optional<T>& value) {
    return name_of_type(value.value_or(T{}));
}

string in_ticks(const string& text) {
    return "`" + text + "`";
}

string without_ticks(std::string_view text) {
    string out(text);
    std::erase(out, '`');
    return out;
}

bool is_none(const setting_info& info, const settings& values) {
    return std::visit(
        [&values](auto member) {
            if constexpr (is_optional_type<std::decay_t<decltype(values.*member)>>::value) {
                return !(values.*member).has_value();
            } else {
                return false;
            }
        },
        info.where);
}

} // namespace

bool is_optional(const setting_info& info) {
    return std::visit(
        [](auto member) {
            return is_optional_type<std::decay_t<decltype(std::declval<settings&>().*member)>>::value;
        },
        info.where);
}

string type_text(const setting_info& info) {
    if (!info.choices.empty()) {
        return "one of " + joined(info.choices);
    }
    if (info.form == shape::size || info.form == shape::tmpfs) {
        return "size";
    }
    static const settings defaults;
    return std::visit([](auto member) { return name_of_type(defaults.*member); }, info.where);
}

string value_text(const setting_info& info, const settings& from) {
    const string text = std::visit([&from](auto member) { return shown(from.*member); }, info.where);
    if (info.secret) {
        return text.empty() ? "(none)" : "(hidden)";
    }
    const bool none = text.empty() || is_none(info, from);
    return none && !info.empty_meaning.empty() ? "(" + without_ticks(info.empty_meaning) + ")" : text;
}

string default_text(const setting_info& info) {
    static const settings defaults;
    if (!info.computed_default.empty()) {
        return string(info.computed_default);
    }
    return is_none(info, defaults) ? "none" : in_ticks(value_text(info, defaults));
}

string documentation_row(const setting_info& info) {
    string empty(info.empty_meaning);
    if (empty.empty()) {
        empty = is_optional(info) ? "none" : "error";
    }
    string summary(info.summary);
    if (!info.in_effect) {
        summary += " *Not yet in effect.*";
    }
    return fmt::format("| `{}` | {} | {} | {} | {} |", variable_name(info.name), type_text(info),
                       default_text(info), empty, summary);
}

} // namespace sandboxd::config
