#include "docker/image_ref.hpp"

#include <algorithm>

namespace sandboxd::docker {

namespace {

bool all_of(std::string_view text, std::string_view extra) {
    return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               extra.find(c) != std::string_view::npos;
    });
}

} // namespace

answer<image_ref> parse_image(std::string_view text) {
    const auto bad = [&] {
        return no_answer(errc::invalid, "'" + words_of(text.substr(0, 200)) + "' is no image reference");
    };
    if (text.size() > 4096) {
        return bad();
    }
    image_ref found;
    std::string_view name = text;
    if (const std::size_t sign = name.find('@'); sign != std::string_view::npos) {
        found.tag = name.substr(sign + 1);
        name = name.substr(0, sign);
        if (!all_of(found.tag, ":+._-") || found.tag.find(':') == std::string::npos) {
            return bad();
        }
    }
    // A colon after the last slash begins a tag; before it, a port.
    const std::size_t slash = name.rfind('/');
    const std::size_t colon = name.find(':', slash == std::string_view::npos ? 0 : slash);
    if (colon != std::string_view::npos) {
        const std::string_view tag = name.substr(colon + 1);
        if (!all_of(tag, "._-") || tag.size() > 128) {
            return bad();
        }
        if (found.tag.empty()) {
            found.tag = tag; // with both, the digest decides
        }
        name = name.substr(0, colon);
    }
    if (found.tag.empty()) {
        found.tag = "latest";
    }
    if (!all_of(name, "._-/:") || name.front() == '/' || name.back() == '/' ||
        name.find("//") != std::string_view::npos) {
        return bad();
    }
    found.name = name;
    const std::string_view first = name.substr(0, name.find('/'));
    const bool host = first.size() != name.size() &&
                      (first.find_first_of(".:") != std::string_view::npos || first == "localhost");
    found.registry = host ? std::string(first) : "docker.io";
    if (found.registry == "index.docker.io") {
        found.registry = "docker.io";
    }
    return found;
}

} // namespace sandboxd::docker
