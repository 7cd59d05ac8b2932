#include "core/utf8.hpp"

#include <cstddef>

namespace sandboxd::core {

namespace {

struct step {
    std::size_t size = 1; ///< bytes of the character, or of the part to be replaced
    bool valid = false;
};

/// What the first byte promises: how many follow, and the range of the second.
struct lead {
    std::size_t more = 0;
    unsigned char low = 0x80;
    unsigned char high = 0xBF;
};

lead lead_of(unsigned char first) noexcept {
    if (first >= 0xC2 && first <= 0xDF) {
        return {1, 0x80, 0xBF};
    }
    if (first >= 0xE0 && first <= 0xEF) {
        return {2, static_cast<unsigned char>(first == 0xE0 ? 0xA0 : 0x80),
                static_cast<unsigned char>(first == 0xED ? 0x9F : 0xBF)};
    }
    if (first >= 0xF0 && first <= 0xF4) {
        return {3, static_cast<unsigned char>(first == 0xF0 ? 0x90 : 0x80),
                static_cast<unsigned char>(first == 0xF4 ? 0x8F : 0xBF)};
    }
    return {};
}

/// `text` is not empty.
step next(std::string_view text) noexcept {
    const auto at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    if (at(0) < 0x80) {
        return {1, true};
    }
    auto [more, low, high] = lead_of(at(0));
    if (more == 0) {
        return {1, false};
    }
    for (std::size_t i = 1; i <= more; ++i) {
        if (i == text.size() || at(i) < low || at(i) > high) {
            return {i, false};
        }
        low = 0x80;
        high = 0xBF;
    }
    return {more + 1, true};
}

} // namespace

bool is_utf8(std::string_view bytes) noexcept {
    while (!bytes.empty()) {
        const step one = next(bytes);
        if (!one.valid) {
            return false;
        }
        bytes.remove_prefix(one.size);
    }
    return true;
}

std::string to_utf8(std::string_view bytes) {
    std::string text;
    text.reserve(bytes.size());
    while (!bytes.empty()) {
        const step one = next(bytes);
        text += one.valid ? bytes.substr(0, one.size) : std::string_view("\xEF\xBF\xBD");
        bytes.remove_prefix(one.size);
    }
    return text;
}

} // namespace sandboxd::core
