#include "docker/api_version.hpp"

#include <algorithm>
#include <charconv>

namespace sandboxd::docker {

namespace {

std::optional<unsigned> number(std::string_view text) {
    unsigned value = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || text.size() > 5 || failed != std::errc{} || end != text.data() + text.size()) {
        return std::nullopt;
    }
    return value;
}

engine_error no_common(const std::string& why) {
    return no_answer(errc::unsupported, why);
}

} // namespace

std::optional<api_version> parse_version(std::string_view text) {
    const std::size_t point = text.find('.');
    if (point == std::string_view::npos) {
        return std::nullopt;
    }
    const auto major = number(text.substr(0, point));
    const auto minor = number(text.substr(point + 1));
    if (!major || !minor) {
        return std::nullopt;
    }
    return api_version{*major, *minor};
}

answer<api_version> negotiate(std::optional<api_version> daemon_newest,
                              std::optional<api_version> daemon_oldest, std::optional<api_version> pinned) {
    const std::string ours = oldest_api.text() + " to " + newest_api.text();
    if (pinned) {
        if (*pinned < oldest_api || *pinned > newest_api) {
            return no_common("DOCKER_API_VERSION=" + pinned->text() + " is outside what sandboxd speaks (" +
                             ours + ")");
        }
        if ((daemon_oldest && *pinned < *daemon_oldest) || (daemon_newest && *pinned > *daemon_newest)) {
            return no_common("DOCKER_API_VERSION=" + pinned->text() + " is outside what the daemon speaks");
        }
        return *pinned;
    }
    // A daemon behind a proxy that drops headers: the oldest we know is the safest guess.
    const api_version chosen = std::min(daemon_newest.value_or(oldest_api), newest_api);
    if (chosen < oldest_api) {
        return no_common("the daemon is too old: it speaks API " + chosen.text() + ", sandboxd needs " +
                         ours + " (Docker Engine 20.10 or later)");
    }
    if (daemon_oldest && chosen < *daemon_oldest) {
        return no_common("the daemon is too new: it speaks API " + daemon_oldest->text() +
                         " and later, sandboxd speaks " + ours);
    }
    return chosen;
}

} // namespace sandboxd::docker
