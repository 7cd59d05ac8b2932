#include "client/answers.hpp"

#include "core/utf8.hpp"
#include "wire/json_parse.hpp"
#include "wire/json_text.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace sandboxd::client {

namespace json = boost::json;

namespace {

/// A whole number in the range of T, whichever way it was written.
template <class T>
std::optional<T> whole(const json::value& from) {
    if (from.is_int64() && std::in_range<T>(from.get_int64())) {
        return static_cast<T>(from.get_int64());
    }
    if (from.is_uint64() && std::in_range<T>(from.get_uint64())) {
        return static_cast<T>(from.get_uint64());
    }
    return std::nullopt;
}

std::optional<double> number(const json::value& from) {
    double value = 0;
    if (from.is_int64()) {
        value = static_cast<double>(from.get_int64());
    } else if (from.is_uint64()) {
        value = static_cast<double>(from.get_uint64());
    } else if (from.is_double()) {
        value = from.get_double();
    } else {
        return std::nullopt;
    }
    return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

bool all_utf8(const json::value& of) {
    if (const auto* text = of.if_string()) {
        return core::is_utf8(std::string_view(*text));
    }
    if (const auto* list = of.if_array()) {
        return std::all_of(list->begin(), list->end(), all_utf8);
    }
    if (const auto* object = of.if_object()) {
        return std::all_of(object->begin(), object->end(), [](const auto& one) {
            return core::is_utf8(std::string_view(one.key())) && all_utf8(one.value());
        });
    }
    return true;
}

std::optional<usage_sample> usage_of(const json::value& from) {
    const fields in(from);
    usage_sample made;
    const bool good = in.is_object() && in.read("memory_bytes", made.memory_bytes) &&
                      in.read("memory_limit_bytes", made.memory_limit_bytes) && in.read("pids", made.pids) &&
                      in.read("cpu_percent", made.cpu_percent);
    return good ? std::optional(made) : std::nullopt;
}

} // namespace

std::optional<json::value> json_of(const std::string& body) {
    if (!core::is_utf8(body)) {
        return std::nullopt;
    }
    auto parsed = wire::parse_json(body);
    auto* value = std::get_if<json::value>(&parsed);
    return value != nullptr ? std::optional(std::move(*value)) : std::nullopt;
}

const json::value* fields::find(std::string_view name) const {
    return object_ != nullptr ? object_->if_contains(name) : nullptr;
}

bool fields::read(std::string_view name, std::string& into) const {
    const auto* value = find(name);
    if (value == nullptr || !value->is_string()) {
        return false;
    }
    into = std::string(value->get_string());
    return true;
}

bool fields::read(std::string_view name, bool& into) const {
    const auto* value = find(name);
    if (value == nullptr || !value->is_bool()) {
        return false;
    }
    into = value->get_bool();
    return true;
}

bool fields::read(std::string_view name, std::uint64_t& into) const {
    const auto* value = find(name);
    const auto read = value != nullptr ? whole<std::uint64_t>(*value) : std::nullopt;
    into = read.value_or(into);
    return read.has_value();
}

bool fields::read(std::string_view name, double& into) const {
    const auto* value = find(name);
    const auto read = value != nullptr ? number(*value) : std::nullopt;
    into = read.value_or(into);
    return read.has_value();
}

bool fields::read(std::string_view name, std::optional<std::string>& into) const {
    const auto* value = find(name);
    if (value == nullptr || value->is_null()) {
        into.reset();
        return true;
    }
    return read(name, into.emplace());
}

bool fields::read(std::string_view name, std::optional<int>& into) const {
    const auto* value = find(name);
    into = value != nullptr ? whole<int>(*value) : std::nullopt;
    return into || value == nullptr || value->is_null();
}

bool fields::read(std::string_view name, std::optional<std::uint64_t>& into) const {
    const auto* value = find(name);
    into = value != nullptr ? whole<std::uint64_t>(*value) : std::nullopt;
    return into || value == nullptr || value->is_null();
}

bool fields::read(std::string_view name, std::optional<double>& into) const {
    const auto* value = find(name);
    into = value != nullptr ? number(*value) : std::nullopt;
    return into || value == nullptr || value->is_null();
}

bool fields::read_if_there(std::string_view name, bool& into) const {
    return find(name) == nullptr || read(name, into);
}

std::optional<session_info> session_info_of(const json::value& from) {
    const fields in(from);
    session_info made;
    const bool good = in.is_object() && in.read("session_id", made.session_id) &&
                      in.read("runtime", made.runtime) && in.read("tenant", made.tenant) &&
                      in.read("alive", made.alive) && in.read("created_at", made.created_at) &&
                      in.read("last_activity", made.last_activity) &&
                      in.read("idle_seconds", made.idle_seconds);
    if (!good || !is_session_id(made.session_id)) {
        return std::nullopt; // an id goes into later requests' paths
    }
    if (const auto* state = in.find("state")) {
        if (*state != "running" && *state != "hibernated") {
            return std::nullopt;
        }
        made.state = std::string(state->get_string());
    }
    if (const auto* usage = in.find("usage"); usage != nullptr && !usage->is_null()) {
        made.usage = usage_of(*usage);
        if (!made.usage) {
            return std::nullopt;
        }
    }
    return made;
}

std::optional<session_created> session_created_of(const std::string& body) {
    const auto parsed = json_of(body);
    const auto* session = parsed ? fields(*parsed).find("session") : nullptr;
    if (session == nullptr) {
        return std::nullopt;
    }
    session_created made;
    auto info = session_info_of(*session);
    if (!info || !fields(*parsed).read("token", made.token) || !is_token(made.token)) {
        return std::nullopt;
    }
    made.session = std::move(*info);
    return made;
}

std::optional<service_policy> service_policy_of(const std::string& body) {
    const auto parsed = json_of(body);
    if (!parsed || !parsed->is_object()) {
        return std::nullopt;
    }
    const fields in(*parsed);
    service_policy made;
    for (const auto& [name, into] : {std::pair{"execute_timeout", &made.execute_timeout},
                                     std::pair{"max_read_bytes", &made.max_read_bytes}}) {
        if (in.find(name) != nullptr && !in.read(name, *into)) {
            return std::nullopt;
        }
    }
    if (!in.read_if_there("native_files", made.native_files) ||
        !in.read_if_there("native_writes", made.native_writes) ||
        !in.read_if_there("native_realpath", made.native_realpath)) {
        return std::nullopt;
    }
    return made;
}

std::optional<file_info> file_info_of(const json::value& from) {
    const fields in(from);
    file_info made;
    const bool good = in.is_object() && in.read("name", made.name) && in.read("path", made.path) &&
                      in.read("is_dir", made.is_dir) && in.read("size", made.size) &&
                      in.read("modified_at", made.modified_at);
    return good ? std::optional(std::move(made)) : std::nullopt;
}

std::optional<std::vector<file_info>> file_infos_of(const json::value& from) {
    const auto* rows = from.if_array();
    if (rows == nullptr) {
        return std::nullopt;
    }
    std::vector<file_info> made;
    made.reserve(rows->size());
    for (const auto& row : *rows) {
        auto one = file_info_of(row);
        if (!one) {
            return std::nullopt;
        }
        made.push_back(std::move(*one));
    }
    return made;
}

std::optional<std::string> json_text(const json::value& body) {
    if (!all_utf8(body)) {
        return std::nullopt;
    }
    std::string text;
    wire::append_value(text, body);
    return text;
}

} // namespace sandboxd::client
