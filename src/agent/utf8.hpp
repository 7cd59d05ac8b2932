#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sandboxd::agent {

/// A character at the front of some bytes.
struct character {
    std::uint32_t code = 0; ///< the byte itself when it is not well-formed UTF-8
    std::size_t size = 0;   ///< 0: there is none
    bool valid = false;
};

/// Shortest forms only, no surrogates, at most U+10FFFF. One bad byte is one character.
[[nodiscard]] inline character first_character(std::string_view bytes) {
    if (bytes.empty()) {
        return {};
    }
    const auto at = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
    const std::uint32_t lead = at(0);
    if (lead < 0x80) {
        return {lead, 1, true};
    }
    const std::size_t size = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    if (lead < 0xC2 || lead > 0xF4 || bytes.size() < size) {
        return {lead, 1, false};
    }
    std::uint32_t code = lead & (0xFFU >> (size + 1));
    for (std::size_t i = 1; i < size; ++i) {
        if ((at(i) & 0xC0U) != 0x80) {
            return {lead, 1, false};
        }
        code = code << 6 | (at(i) & 0x3FU);
    }
    constexpr std::uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (code < least[size] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) {
        return {lead, 1, false};
    }
    return {code, size, true};
}

} // namespace sandboxd::agent
