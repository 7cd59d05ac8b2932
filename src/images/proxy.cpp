#include "images/proxy.hpp"

#include <cstdlib>

namespace sandboxd::images {

namespace {

std::optional<std::string> of_this_process(const std::string& name) {
    const char* value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

std::optional<std::string> non_empty(std::optional<std::string> value) {
    return value && value->empty() ? std::nullopt : value;
}

} // namespace

std::vector<std::pair<std::string, std::string>>
proxy_settings(const std::function<std::optional<std::string>(const std::string& name)>& environment) {
    std::vector<std::pair<std::string, std::string>> out;
    for (const std::string lower : {"http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy"}) {
        std::string upper;
        for (const char c : lower) {
            upper += c == '_' ? '_' : static_cast<char>(c - 'a' + 'A');
        }
        const auto large = non_empty(environment(upper));
        const auto small = non_empty(environment(lower));
        if (large || small) {
            out.emplace_back(upper, large ? *large : *small);
            out.emplace_back(lower, small ? *small : *large);
        }
    }
    return out;
}

std::vector<std::pair<std::string, std::string>> proxy_settings() {
    return proxy_settings(of_this_process);
}

} // namespace sandboxd::images
