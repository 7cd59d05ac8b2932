#include "router/query.hpp"

#include "router/text.hpp"

#include <algorithm>

namespace sandboxd::router {

query::query(std::string_view raw) {
    while (!raw.empty()) {
        const auto field = raw.substr(0, raw.find('&'));
        raw.remove_prefix(std::min(raw.size(), field.size() + 1));
        if (field.empty()) {
            continue;
        }
        const auto equals = field.find('=');
        const auto value = equals == std::string_view::npos ? std::string_view() : field.substr(equals + 1);
        fields_.emplace_back(decode_form(field.substr(0, equals)), decode_form(value));
    }
}

std::optional<std::string_view> query::get(std::string_view name) const noexcept {
    const auto found = std::find_if(fields_.rbegin(), fields_.rend(),
                                    [&](const auto& field) { return field.first == name; });
    if (found == fields_.rend()) {
        return std::nullopt;
    }
    return found->second;
}

} // namespace sandboxd::router
