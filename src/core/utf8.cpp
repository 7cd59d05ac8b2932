#include "core/utf8.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace sandboxd::core {

namespace {

struct lead {
    std::size_t length;
    unsigned char low; ///< bounds of the second byte
    unsigned char high;
};

/// What a first byte promises; length 0 for one that can't be first. The table 3-7 of the Unicode standard.
lead lead_of(unsigned char byte) noexcept {
    if (byte < 0xC2) {
        return {0, 0, 0};
    }
    if (byte < 0xE0) {
        return {2, 0x80, 0xBF};
    }
    if (byte < 0xF0) {
        return {3, static_cast<unsigned char>(byte == 0xE0 ? 0xA0 : 0x80),
                static_cast<unsigned char>(byte == 0xED ? 0x9F : 0xBF)};
    }
    if (byte < 0xF5) {
        return {4, static_cast<unsigned char>(byte == 0xF0 ? 0x90 : 0x80),
                static_cast<unsigned char>(byte == 0xF4 ? 0x8F : 0xBF)};
    }
    return {0, 0, 0};
}

} // namespace

utf8_sequence next_sequence(std::string_view bytes) noexcept {
    const auto first = static_cast<unsigned char>(bytes[0]);
    if (first < 0x80) {
        return {1, true};
    }
    const lead promised = lead_of(first);
    if (promised.length == 0) {
        return {1, false};
    }
    for (std::size_t i = 1; i < promised.length; ++i) {
        const unsigned char low = i == 1 ? promised.low : 0x80;
        const unsigned char high = i == 1 ? promised.high : 0xBF;
        if (i == bytes.size()) {
            return {i, false};
        }
        const auto byte = static_cast<unsigned char>(bytes[i]);
        if (byte < low || byte > high) {
            return {i, false};
        }
    }
    return {promised.length, true};
}

std::size_t ascii_prefix(std::string_view bytes) noexcept {
    std::size_t at = 0;
    for (; at + 8 <= bytes.size(); at += 8) {
        std::uint64_t word = 0;
        std::memcpy(&word, bytes.data() + at, 8);
        if ((word & 0x8080808080808080U) != 0) {
            break;
        }
    }
    while (at < bytes.size() && static_cast<unsigned char>(bytes[at]) < 0x80) {
        ++at;
    }
    return at;
}

std::size_t valid_prefix(std::string_view bytes) noexcept {
    std::size_t at = 0;
    for (;;) {
        at += ascii_prefix(bytes.substr(at));
        if (at == bytes.size()) {
            return at;
        }
        const auto sequence = next_sequence(bytes.substr(at));
        if (!sequence.valid) {
            return at;
        }
        at += sequence.length;
    }
}

bool is_utf8(std::string_view bytes) noexcept {
    return valid_prefix(bytes) == bytes.size();
}

std::string to_utf8(std::string bytes) {
    const std::string_view all = bytes;
    std::size_t at = valid_prefix(all);
    if (at == all.size()) {
        return bytes;
    }
    std::string out;
    out.reserve(all.size() + all.size() / 2);
    out.append(all.substr(0, at));
    while (at < all.size()) {
        at += next_sequence(all.substr(at)).length;
        out.append(replacement);
        const std::size_t good = valid_prefix(all.substr(at));
        out.append(all.substr(at, good));
        at += good;
    }
    return out;
}

std::size_t count_characters(std::string_view text) noexcept {
    return static_cast<std::size_t>(std::count_if(
        text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

} // namespace sandboxd::core
