#pragma once

#include "docker/error.hpp"

#include <compare>
#include <optional>

namespace sandboxd::docker {

/// "1.41"
struct api_version {
    unsigned major = 0;
    unsigned minor = 0;
    auto operator<=>(const api_version&) const = default;
    [[nodiscard]] std::string text() const { return std::to_string(major) + "." + std::to_string(minor); }
};

/// Digits, a point, digits; at most 5 digits each.
[[nodiscard]] std::optional<api_version> parse_version(std::string_view text);

inline constexpr api_version oldest_api{1, 41}; ///< what this client needs at least (one-shot statistics)
inline constexpr api_version newest_api{1, 47}; ///< what this client knows

/// What to speak with a daemon (engine-facts A1): the lower of its newest and ours, or `pinned`
/// (DOCKER_API_VERSION). errc::unsupported, with both ranges in words, when there is no common version.
[[nodiscard]] answer<api_version> negotiate(std::optional<api_version> daemon_newest,
                                            std::optional<api_version> daemon_oldest,
                                            std::optional<api_version> pinned);

} // namespace sandboxd::docker
