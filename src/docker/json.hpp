#pragma once

// Reading the daemon's JSON: unknown members are ignored, a missing or null one and one of another type are
// the same as absent (engine-facts A1: "open schema").

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sandboxd::docker {

namespace json = boost::json;

/// The member reached by following `path` through objects ("State.Health.Status" is `{"State", "Health",
/// "Status"}`); null when any part is missing.
template <class... Path>
[[nodiscard]] const json::value* at(const json::object& from, std::string_view name, Path... rest) {
    const auto* found = from.if_contains(name);
    if constexpr (sizeof...(rest) == 0) {
        return found;
    } else {
        const auto* inner = found != nullptr ? found->if_object() : nullptr;
        return inner != nullptr ? at(*inner, rest...) : nullptr;
    }
}

[[nodiscard]] std::optional<std::string> text(const json::value* value);
[[nodiscard]] std::optional<std::int64_t> integer(const json::value* value);
[[nodiscard]] std::optional<std::uint64_t> count(const json::value* value); ///< not for negative numbers
[[nodiscard]] std::optional<bool> boolean(const json::value* value);
/// The strings of an array; others in it are left out.
[[nodiscard]] std::vector<std::string> texts(const json::value* value);
/// The members of an object that are strings.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> pairs(const json::value* value);

template <class... Path>
[[nodiscard]] std::optional<std::string> text_at(const json::object& from, Path... path) {
    return text(at(from, path...));
}

/// The text as one JSON object; nothing for anything else (invalid, too deep, an array).
[[nodiscard]] std::optional<json::object> json_object(std::string_view body);
[[nodiscard]] std::optional<json::array> json_array(std::string_view body);

} // namespace sandboxd::docker
