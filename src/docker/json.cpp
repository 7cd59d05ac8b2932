#include "docker/json.hpp"

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>

#include <limits>

namespace sandboxd::docker {

namespace {

std::optional<json::value> parse(std::string_view body) {
    boost::system::error_code failed;
    json::parse_options options;
    options.max_depth = 64;
    auto value = json::parse(body, failed, {}, options);
    if (failed) {
        return std::nullopt;
    }
    return std::optional<json::value>(std::in_place, std::move(value));
}

} // namespace

std::optional<std::string> text(const json::value* value) {
    const auto* string = value != nullptr ? value->if_string() : nullptr;
    if (string == nullptr) {
        return std::nullopt;
    }
    return std::string(string->data(), string->size());
}

std::optional<std::int64_t> integer(const json::value* value) {
    if (value == nullptr) {
        return std::nullopt;
    }
    if (const auto* number = value->if_int64()) {
        return *number;
    }
    if (const auto* number = value->if_double()) {
        // Some daemons print large counts as 1e9: taken where the value is exactly an integer.
        if (*number > -9e15 && *number < 9e15) {
            const auto whole = static_cast<std::int64_t>(*number);
            if (static_cast<double>(whole) >= *number && static_cast<double>(whole) <= *number) {
                return whole;
            }
        }
    }
    return std::nullopt;
}

std::optional<std::uint64_t> count(const json::value* value) {
    if (value != nullptr && value->is_uint64()) {
        return value->get_uint64();
    }
    const auto number = integer(value);
    if (!number || *number < 0) {
        return std::nullopt;
    }
    return static_cast<std::uint64_t>(*number);
}

std::optional<bool> boolean(const json::value* value) {
    const auto* found = value != nullptr ? value->if_bool() : nullptr;
    return found != nullptr ? std::optional<bool>(*found) : std::nullopt;
}

std::vector<std::string> texts(const json::value* value) {
    std::vector<std::string> all;
    const auto* array = value != nullptr ? value->if_array() : nullptr;
    if (array != nullptr) {
        for (const auto& one : *array) {
            if (auto string = text(&one)) {
                all.push_back(std::move(*string));
            }
        }
    }
    return all;
}

std::vector<std::pair<std::string, std::string>> pairs(const json::value* value) {
    std::vector<std::pair<std::string, std::string>> all;
    const auto* object = value != nullptr ? value->if_object() : nullptr;
    if (object != nullptr) {
        for (const auto& member : *object) {
            if (auto string = text(&member.value())) {
                all.emplace_back(std::string(member.key()), std::move(*string));
            }
        }
    }
    return all;
}

std::optional<json::object> json_object(std::string_view body) {
    auto value = parse(body);
    if (!value || !value->is_object()) {
        return std::nullopt;
    }
    return std::move(value->get_object());
}

std::optional<json::array> json_array(std::string_view body) {
    auto value = parse(body);
    if (!value || !value->is_array()) {
        return std::nullopt;
    }
    return std::move(value->get_array());
}

} // namespace sandboxd::docker
