#pragma once

// What stands plainly in a JSON string is passed over eight bytes at a time: commands and outputs are long.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace sandboxd::wire {

static_assert(std::endian::native == std::endian::little, "pass_over() counts bytes from the low end");

inline constexpr std::uint64_t top_bits = 0x8080808080808080U;

/// A high bit in every byte that is a control character, a quote or a backslash. Exact up to and including
/// the lowest one, which is all that pass_over() uses.
inline std::uint64_t special_bytes(std::uint64_t word) noexcept {
    constexpr std::uint64_t ones = 0x0101010101010101U;
    const auto zeros = [](std::uint64_t w) { return (w - ones) & ~w & top_bits; };
    return zeros(word ^ (ones * '"')) | zeros(word ^ (ones * '\\')) |
           ((word - ones * 0x20U) & ~word & top_bits);
}

/// The first byte from `at` on that `marked` puts a high bit in, or the end; `stops` says the same of one
/// byte.
template <class Marked, class Stops>
std::size_t pass_over(std::string_view text, std::size_t at, Marked marked, Stops stops) noexcept {
    while (at + sizeof(std::uint64_t) <= text.size()) {
        std::uint64_t word = 0;
        std::memcpy(&word, text.data() + at, sizeof word);
        if (const std::uint64_t mask = marked(word); mask != 0) {
            return at + static_cast<std::size_t>(std::countr_zero(mask)) / 8;
        }
        at += sizeof word;
    }
    while (at < text.size() && !stops(text[at])) {
        ++at;
    }
    return at;
}

/// A control character, a quote or a backslash.
inline bool is_special(char c) noexcept {
    return static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '\\';
}

} // namespace sandboxd::wire
