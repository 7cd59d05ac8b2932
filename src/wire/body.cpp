#include "wire/body.hpp"

#include "core/utf8.hpp"
#include "wire/json_parse.hpp"

#include <boost/json.hpp>

#include <algorithm>

namespace sandboxd::wire {
namespace {

body_failure unreadable() {
    return {400, detail_body("There was an error parsing the body")};
}

body_failure broken(const json_fault& why) {
    fault_list faults;
    boost::json::object context;
    context["error"] = why.text;
    faults.add({"json_invalid",
                {"body", static_cast<std::int64_t>(why.position)},
                "JSON decode error",
                "{}",
                std::move(context)});
    return {422, faults_body(faults)};
}

} // namespace

bool is_json_type(std::string_view content_type) {
    std::string type(content_type.substr(0, content_type.find(';')));
    std::transform(type.begin(), type.end(), type.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
    const auto first = type.find_first_not_of(" \t");
    const auto last = type.find_last_not_of(" \t");
    if (first == std::string::npos) {
        return false;
    }
    const std::string_view name = std::string_view(type).substr(first, last - first + 1);
    constexpr std::string_view family = "application/";
    if (!name.starts_with(family)) {
        return false;
    }
    const std::string_view subtype = name.substr(family.size());
    return subtype == "json" || (subtype.ends_with("+json") && subtype.find('/') == std::string_view::npos);
}

std::variant<parsed_body, body_failure> parse_body(std::optional<std::string_view> content_type,
                                                   std::string_view bytes) {
    if (bytes.empty()) {
        return parsed_body{};
    }
    if (content_type && !is_json_type(*content_type)) {
        // Only the start: it is never more than repeated in a fault.
        constexpr std::size_t shown = 8192;
        parsed_body out{true, nullptr};
        out.value = boost::json::string(core::to_utf8(std::string(bytes.substr(0, shown))));
        return out;
    }
    if (!core::is_utf8(bytes)) {
        return unreadable();
    }
    auto parsed = parse_json(bytes);
    if (auto* value = std::get_if<boost::json::value>(&parsed)) {
        return parsed_body{true, std::move(*value)};
    }
    if (const auto* why = std::get_if<json_fault>(&parsed)) {
        return broken(*why);
    }
    return unreadable();
}

} // namespace sandboxd::wire
