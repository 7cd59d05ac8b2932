#include "launcher/image_reference.hpp"

#include <algorithm>

namespace sandboxd::launcher {

namespace {

constexpr std::size_t max_path = 4095;
constexpr std::size_t max_tag = 128;

error refuse(std::string_view image, const std::string& why) {
    return {errc::start_failed, "the image '" + std::string(image) + "' " + why};
}

bool is_tag(std::string_view text) {
    const auto plain = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
               c == '_' || c == '-';
    };
    return !text.empty() && text.size() <= max_tag && std::all_of(text.begin(), text.end(), plain);
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
    return image_reference{what, std::string(path), ""};
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
    return refuse(
        text, "is a name of a registry, which this release does not fetch with the oci backend: use 'host', "
              "'dir:PATH', 'oci:LAYOUT[:TAG]' or 'docker-archive:FILE'");
}

} // namespace sandboxd::launcher
