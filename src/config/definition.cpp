#include "config/definition.hpp"

#include "config/runtimes.hpp"
#include "config/text.hpp"

#include <boost/json.hpp>

#include <algorithm>
#include <array>

namespace sandboxd::config {
namespace {

using std::string;
using std::string_view;
namespace json = boost::json;

constexpr std::array<string_view, 11> fields{"name",     "description",     "image",          "base_image",
                                             "packages", "package_manager", "setup_commands", "env_vars",
                                             "work_dir", "cache_image",     "run_as_uid"};
constexpr std::array<string_view, 4> managers{"pip", "npm", "apt", "cargo"};

error wrong(string_view field, const string& cause) {
    return error{errc::invalid, string(field) + ": " + cause};
}

bool has_line_end(string_view text) {
    return text.find_first_of("\r\n") != string_view::npos;
}

bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

bool is_package(string_view name) {
    const auto inner = [](char c) {
        return is_letter(c) || is_digit(c) || string_view("._@/+=<>~![]-").find(c) != string_view::npos;
    };
    return !name.empty() && (is_letter(name[0]) || is_digit(name[0]) || name[0] == '@') &&
           std::all_of(name.begin(), name.end(), inner);
}

bool is_identifier(string_view name) {
    const auto inner = [](char c) { return is_letter(c) || is_digit(c) || c == '_'; };
    return !name.empty() && !is_digit(name[0]) && std::all_of(name.begin(), name.end(), inner);
}

result<void> read_text(string& into, string_view field, const json::value& value) {
    if (!value.is_string()) {
        return wrong(field, "must be a string");
    }
    into = value.get_string();
    return {};
}

result<void> read_text(std::optional<string>& into, string_view field, const json::value& value) {
    return value.is_null() ? result<void>{} : read_text(into.emplace(), field, value);
}

result<void> read_list(std::vector<string>& into, string_view field, const json::value& value) {
    if (!value.is_array()) {
        return wrong(field, "must be a list of strings");
    }
    for (const auto& item : value.get_array()) {
        if (auto done = read_text(into.emplace_back(), field, item); !done) {
            return done;
        }
    }
    return {};
}

result<void> read_env(runtime_definition& out, const json::value& value) {
    if (!value.is_object()) {
        return wrong("env_vars", "must be an object of strings");
    }
    for (const auto& [name, text] : value.get_object()) {
        out.env_vars.emplace_back(string(name), string());
        if (auto done = read_text(out.env_vars.back().second, "env_vars", text); !done) {
            return done;
        }
    }
    return {};
}

result<void> read_uid(std::optional<std::uint32_t>& into, const json::value& value) {
    if (value.is_null()) {
        return {};
    }
    constexpr std::int64_t last = 4'294'967'294;
    if (!value.is_int64() || value.get_int64() < 1 || value.get_int64() > last) {
        return wrong("run_as_uid", "must be a positive uid");
    }
    into = static_cast<std::uint32_t>(value.get_int64());
    return {};
}

result<void> read_field(runtime_definition& out, string_view field, const json::value& value) {
    if (field == "name") {
        return read_text(out.name, field, value);
    }
    if (field == "description") {
        return read_text(out.description, field, value);
    }
    if (field == "image") {
        return read_text(out.image, field, value);
    }
    if (field == "base_image") {
        return read_text(out.base_image, field, value);
    }
    if (field == "packages") {
        return read_list(out.packages, field, value);
    }
    if (field == "package_manager") {
        return read_text(out.package_manager, field, value);
    }
    if (field == "setup_commands") {
        return read_list(out.setup_commands, field, value);
    }
    if (field == "env_vars") {
        return read_env(out, value);
    }
    if (field == "work_dir") {
        return read_text(out.work_dir, field, value);
    }
    if (field == "run_as_uid") {
        return read_uid(out.run_as_uid, value);
    }
    if (field == "cache_image") {
        if (!value.is_bool()) {
            return wrong(field, "must be true or false");
        }
        out.cache_image = value.get_bool();
        return {};
    }
    const string near = suggestion(field, fields);
    return wrong(field,
                 "a runtime has no such field." + (near.empty() ? " It has " + joined(fields) + "." : near));
}

result<void> check(const runtime_definition& definition) {
    if (definition.name.empty()) {
        return wrong("name", "is required");
    }
    if (std::find(managers.begin(), managers.end(), definition.package_manager) == managers.end()) {
        return wrong("package_manager", "use one of " + joined(managers));
    }
    for (const auto& name : definition.packages) {
        if (!is_package(name)) {
            return wrong("packages", "Invalid package name " + in_quotes(name));
        }
    }
    for (const auto& command : definition.setup_commands) {
        if (has_line_end(command)) {
            return wrong("setup_commands", "a setup command must not hold a newline");
        }
    }
    for (const auto& [name, value] : definition.env_vars) {
        if (!is_identifier(name)) {
            return wrong("env_vars", in_quotes(name) + " is no environment variable name");
        }
        if (has_line_end(value)) {
            return wrong("env_vars", "the value of " + in_quotes(name) + " must not hold a newline");
        }
    }
    if (const auto fault = work_dir_fault(definition.work_dir); fault || has_line_end(definition.work_dir)) {
        return wrong("work_dir", fault.value_or("must not hold a newline"));
    }
    return {};
}

} // namespace

result<runtime_definition> read_definition(const json::object& object) {
    runtime_definition out;
    for (const auto& [field, value] : object) {
        if (auto done = read_field(out, field, value); !done) {
            return done.error();
        }
    }
    if (auto done = check(out); !done) {
        return done.error();
    }
    return out;
}

} // namespace sandboxd::config
