#include "launcher/image_config.hpp"

#include "launcher/fields.hpp"
#include "launcher/text.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>

namespace sandboxd::launcher {

namespace json = boost::json;

namespace {

constexpr const char* default_path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

error broken() {
    return {errc::start_failed, "the image's configuration is not what the OCI image format says"};
}

/// The entry of passwd (7 fields) or group (4) whose name, or whose number, is `key`.
std::optional<std::vector<std::string_view>> entry(std::string_view file, std::string_view key,
                                                   std::size_t fields) {
    for (const auto line : split(file, '\n')) {
        auto parts = split(line, ':');
        if (parts.size() >= fields && (parts[0] == key || parts[2] == key)) {
            return parts;
        }
    }
    return std::nullopt;
}

result<std::uint32_t> resolve_group(std::string_view name, std::string_view group) {
    if (const auto gid = parse_number(name)) {
        return *gid;
    }
    const auto found = entry(group, name, 4);
    const auto gid = found ? parse_number((*found)[2]) : std::nullopt;
    if (!gid) {
        return error{errc::start_failed,
                     "the image's group '" + std::string(name) + "' is not in its /etc/group"};
    }
    return *gid;
}

bool get_strings(const json::object& from, const char* name, std::vector<std::string>& into) {
    const auto* found = from.if_contains(name);
    if (found == nullptr || found->is_null()) {
        return true;
    }
    const auto* list = found->if_array();
    if (list == nullptr) {
        return false;
    }
    for (const auto& one : *list) {
        const auto* text = one.if_string();
        if (text == nullptr || text->find('\0') != json::string::npos) {
            return false;
        }
        into.emplace_back(text->data(), text->size());
    }
    return true;
}

bool get_string(const json::object& from, const char* name, std::string& into) {
    const auto* found = from.if_contains(name);
    if (found == nullptr || found->is_null()) {
        return true;
    }
    const auto* text = found->if_string();
    if (text == nullptr || text->find('\0') != json::string::npos) {
        return false;
    }
    into.assign(text->data(), text->size());
    return true;
}

void set(environment& env, std::string_view name, std::string_view value) {
    const auto found =
        std::find_if(env.begin(), env.end(), [&](const auto& one) { return one.first == name; });
    if (found != env.end()) {
        found->second = value;
    } else {
        env.emplace_back(name, value);
    }
}

void set_default(environment& env, std::string_view name, std::string_view value) {
    if (std::none_of(env.begin(), env.end(), [&](const auto& one) { return one.first == name; })) {
        env.emplace_back(name, value);
    }
}

} // namespace

result<image_config> parse_image_config(std::string_view text) {
    boost::system::error_code failed;
    const auto value = json::parse(json::string_view(text.data(), text.size()), failed);
    const auto* top = value.if_object();
    if (failed || top == nullptr) {
        return broken();
    }
    image_config made;
    const auto* config = top->if_contains("config");
    if (config == nullptr || config->is_null()) {
        return made;
    }
    const auto* from = config->if_object();
    std::vector<std::string> variables;
    if (from == nullptr || !get_strings(*from, "Env", variables) || !get_string(*from, "User", made.user) ||
        !get_string(*from, "WorkingDir", made.work_dir) ||
        !get_strings(*from, "Entrypoint", made.entrypoint)) {
        return broken();
    }
    for (const auto& variable : variables) {
        const auto sign = variable.find('=');
        if (sign != 0 && sign != std::string::npos) {
            set(made.env, variable.substr(0, sign), variable.substr(sign + 1));
        }
    }
    return made;
}

std::string encode_image_config(const image_config& config) {
    json::array env;
    for (const auto& [name, value] : config.env) {
        env.emplace_back(name);
        env.emplace_back(value);
    }
    json::array entrypoint;
    for (const auto& one : config.entrypoint) {
        entrypoint.emplace_back(one);
    }
    return json::serialize(json::object{
        {"env", env}, {"user", config.user}, {"work_dir", config.work_dir}, {"entrypoint", entrypoint}});
}

result<image_config> decode_image_config(std::string_view text) {
    boost::system::error_code failed;
    json::parse_options options;
    options.allow_invalid_utf8 = true;
    const auto value = json::parse(json::string_view(text.data(), text.size()), failed, {}, options);
    field_reader from(value);
    image_config made;
    made.env = from.pairs("env");
    made.user = from.text("user");
    made.work_dir = from.text("work_dir");
    made.entrypoint = from.texts("entrypoint");
    if (failed || from.failed()) {
        return broken();
    }
    return made;
}

result<resolved_user> resolve_user(std::string_view user, std::string_view passwd, std::string_view group) {
    const auto colon = user.find(':');
    const auto name = user.substr(0, colon);
    resolved_user made;
    const auto found = entry(passwd, name, 7);
    const auto uid = found ? parse_number((*found)[2]) : parse_number(name);
    if (!uid) {
        return error{errc::start_failed,
                     "the image's user '" + std::string(name) + "' is not in its /etc/passwd"};
    }
    made.ids.uid = *uid;
    made.ids.gid = found ? parse_number((*found)[3]).value_or(0) : 0;
    made.home = home_of(*uid, passwd);
    if (colon != std::string_view::npos) {
        const auto gid = resolve_group(user.substr(colon + 1), group);
        if (!gid) {
            return gid.error();
        }
        made.ids.gid = *gid;
    }
    return made;
}

std::string home_of(std::uint32_t uid, std::string_view passwd) {
    for (const auto line : split(passwd, '\n')) {
        const auto parts = split(line, ':');
        if (parts.size() >= 7 && parse_number(parts[2]) == uid && parts[5].substr(0, 1) == "/") {
            return std::string(parts[5]);
        }
    }
    return uid == 0 ? "/root" : "/";
}

void add_usual_path(environment& env) {
    set_default(env, "PATH", default_path);
}

environment merge_environment(const environment& image, const environment& over, const std::string& home,
                              const std::string& hostname) {
    auto merged = image;
    for (const auto& [name, value] : over) {
        set(merged, name, value);
    }
    add_usual_path(merged);
    set_default(merged, "HOME", home);
    set_default(merged, "HOSTNAME", hostname);
    return merged;
}

} // namespace sandboxd::launcher
