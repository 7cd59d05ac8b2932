#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sandboxd::images {

/// The proxy settings of the environment, for the steps of a build: HTTP_PROXY, HTTPS_PROXY, FTP_PROXY,
/// ALL_PROXY and NO_PROXY, each in both spellings, since programs differ in which they read. Where only one
/// spelling is set the other gets its value.
[[nodiscard]] std::vector<std::pair<std::string, std::string>>
proxy_settings(const std::function<std::optional<std::string>(const std::string& name)>& environment);

/// Of this process.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> proxy_settings();

} // namespace sandboxd::images
