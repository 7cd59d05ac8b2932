#include "launcher/image_reference.hpp"

#include "launcher/text.hpp"

#include <algorithm>
#include <optional>

namespace sandboxd::launcher {

namespace {

constexpr std::size_t max_path = 4095;
constexpr std::size_t max_tag = 128;
constexpr std::size_t max_name = 255;
constexpr std::size_t max_shown = 300; ///< of what is no reference, in words

error refuse(std::string_view image, const std::string& why) {
    return {errc::start_failed, "the image '" + std::string(image) + "' " + why};
}

bool is_lower(char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

bool is_plain(char c) {
    return is_lower(c) || (c >= 'A' && c <= 'Z') || c == '.' || c == '_' || c == '-';
}

bool is_tag(std::string_view text) {
    return !text.empty() && text.size() <= max_tag && text.front() != '.' && text.front() != '-' &&
           std::all_of(text.begin(), text.end(), is_plain);
}

/// "ghcr.io", "localhost:5000", "[::1]:5000"
bool is_host(std::string_view text) {
    if (text.substr(0, 1) == "[") {
        const auto end = text.find(']');
        const auto inner = [](char c) { return is_plain(c) || c == ':'; };
        return end != std::string_view::npos && end > 1 &&
               std::all_of(text.begin() + 1, text.begin() + static_cast<std::ptrdiff_t>(end), inner) &&
               (end + 1 == text.size() || (text[end + 1] == ':' && parse_number(text.substr(end + 2))));
    }
    const auto colon = text.find(':');
    const auto name = text.substr(0, colon);
    return !name.empty() && name.front() != '-' && name.front() != '.' &&
           std::all_of(name.begin(), name.end(), is_plain) &&
           (colon == std::string_view::npos || parse_number(text.substr(colon + 1)));
}

bool is_component(std::string_view text) {
    const auto inner = [](char c) { return is_lower(c) || c == '.' || c == '_' || c == '-'; };
    return !text.empty() && is_lower(text.front()) && is_lower(text.back()) &&
           std::all_of(text.begin(), text.end(), inner);
}

/// The engine's rule: what has a dot, a colon or is "localhost" names a registry.
bool names_host(std::string_view first) {
    return first.find_first_of(".:") != std::string_view::npos || first == "localhost";
}

std::optional<image_reference> registry_reference(std::string_view text) {
    image_reference made;
    made.what = image_reference::kind::registry;
    if (const auto at = text.find('@'); at != std::string_view::npos) {
        made.digest = text.substr(at + 1);
        if (!is_digest(made.digest)) {
            return std::nullopt;
        }
        text = text.substr(0, at);
    }
    const auto slash = text.find('/');
    std::string_view host;
    if (slash != std::string_view::npos && names_host(text.substr(0, slash))) {
        host = text.substr(0, slash);
        text.remove_prefix(slash + 1);
        if (!is_host(host)) {
            return std::nullopt;
        }
    }
    made.tag = "latest";
    if (const auto colon = text.find(':'); colon != std::string_view::npos) {
        made.tag = text.substr(colon + 1);
        text = text.substr(0, colon);
        if (!is_tag(made.tag)) {
            return std::nullopt;
        }
    }
    const auto components = split(text, '/');
    if (text.size() > max_name || !std::all_of(components.begin(), components.end(), is_component)) {
        return std::nullopt;
    }
    if (host.empty() || host == "index.docker.io" || host == "registry-1.docker.io") {
        host = "docker.io";
    }
    made.path = std::string(host) + (host == "docker.io" && components.size() == 1 ? "/library/" : "/") +
                std::string(text);
    return made;
}

/// True for "/", "//", "/." and the like.
bool is_root(std::string_view path) {
    return path.find_first_not_of("/.") == std::string_view::npos;
}

result<image_reference> with_path(std::string_view image, image_reference::kind what, std::string_view path) {
    if (path.empty() || path.front() != '/' || path.size() > max_path ||
        path.find('\0') != std::string_view::npos) {
        return refuse(image, "needs an absolute path");
    }
    if (is_root(path)) {
        return refuse(image, "would show the host's whole file system: use the image 'host'");
    }
    return image_reference{what, std::string(path), "", ""};
}

bool take_prefix(std::string_view& text, std::string_view prefix) {
    if (text.substr(0, prefix.size()) != prefix) {
        return false;
    }
    text.remove_prefix(prefix.size());
    return true;
}

} // namespace

result<image_reference> parse_image_reference(std::string_view text) {
    using kind = image_reference::kind;
    auto rest = text;
    if (text == "host") {
        return image_reference{};
    }
    if (take_prefix(rest, "dir:") || text.substr(0, 1) == "/") {
        return with_path(text, kind::directory, rest);
    }
    if (take_prefix(rest, "docker-archive:")) {
        return with_path(text, kind::docker_archive, rest);
    }
    if (take_prefix(rest, "oci:")) {
        std::string_view tag;
        const auto colon = rest.rfind(':');
        if (colon != std::string_view::npos && is_tag(rest.substr(colon + 1))) {
            tag = rest.substr(colon + 1);
            rest = rest.substr(0, colon);
        }
        auto made = with_path(text, kind::oci_layout, rest);
        if (made) {
            made->tag = tag;
        }
        return made;
    }
    if (text.size() <= max_path) {
        if (auto made = registry_reference(text)) {
            return *made;
        }
    }
    return refuse(text.substr(0, max_shown),
                  "is no image: the oci backend takes 'host', 'dir:PATH', 'oci:LAYOUT[:TAG]', "
                  "'docker-archive:FILE' and names of a registry such as 'python:3.12-slim'");
}

bool is_loopback(std::string_view host) {
    if (host.substr(0, 1) == "[") {
        return host.substr(0, host.find(']') + 1) == "[::1]";
    }
    const auto name = host.substr(0, host.find(':'));
    if (name == "localhost") {
        return true;
    }
    const auto parts = split(name, '.');
    return parts.size() == 4 && parts[0] == "127" &&
           std::all_of(parts.begin(), parts.end(), [](auto part) { return parse_number(part).has_value(); });
}

bool is_digest(std::string_view text) {
    return text.size() == 71 && text.substr(0, 7) == "sha256:" &&
           text.substr(7).find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

} // namespace sandboxd::launcher
