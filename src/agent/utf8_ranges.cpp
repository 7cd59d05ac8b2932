#include "agent/utf8_ranges.hpp"

#include <algorithm>

namespace sandboxd::agent {

namespace {

constexpr std::uint32_t last_code = 0x10FFFF;

std::size_t encode(std::uint32_t code, unsigned char (&out)[4]) {
    const std::size_t size = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    constexpr unsigned char lead[] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (std::size_t i = size; i-- > 0;) {
        out[i] = static_cast<unsigned char>(i == 0 ? lead[size] | code : 0x80 | (code & 0x3F));
        code >>= 6;
    }
    return size;
}

} // namespace

/// Cuts a range of characters into pieces whose encodings are all combinations of byte ranges.
void append_utf8_ranges(std::uint32_t from, std::uint32_t to, std::vector<byte_ranges>& out) {
    to = std::min(to, last_code);
    if (from > to) {
        return;
    }
    if (from < 0xE000 && to >= 0xD800 && !(from < 0xD800 && to < 0xD800)) { // surrogates have no encoding
        if (from < 0xD800) {
            append_utf8_ranges(from, 0xD7FF, out);
        }
        if (to >= 0xE000) {
            append_utf8_ranges(0xE000, to, out);
        }
        return;
    }
    for (const std::uint32_t edge : {0x7FU, 0x7FFU, 0xFFFFU}) {
        if (from <= edge && to > edge) {
            append_utf8_ranges(from, edge, out);
            append_utf8_ranges(edge + 1, to, out);
            return;
        }
    }
    for (unsigned bits = 6; bits <= 18 && to >= 0x80; bits += 6) {
        const std::uint32_t mask = (1U << bits) - 1;
        if ((from | mask) == (to | mask)) {
            continue;
        }
        if ((from & mask) != 0) {
            append_utf8_ranges(from, from | mask, out);
            append_utf8_ranges((from | mask) + 1, to, out);
            return;
        }
        if ((to & mask) != mask) {
            append_utf8_ranges(from, (to & ~mask) - 1, out);
            append_utf8_ranges(to & ~mask, to, out);
            return;
        }
    }
    unsigned char low[4];
    unsigned char high[4];
    const auto size = encode(from, low);
    encode(to, high);
    auto& added = out.emplace_back();
    for (std::size_t i = 0; i < size; ++i) {
        added.emplace_back(low[i], high[i]);
    }
}

} // namespace sandboxd::agent
