#include "core/base64.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

namespace sandboxd::core {

namespace {

constexpr std::string_view standard = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::string_view url_safe = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

constexpr std::uint32_t no_digit = 0xFF000000U; ///< above all that four digits make together

/// What a digit stands for in the standard alphabet, no_digit for what is none.
constexpr auto values = [] {
    std::array<std::uint32_t, 256> table{};
    table.fill(no_digit);
    for (std::size_t i = 0; i < standard.size(); ++i) {
        table[static_cast<unsigned char>(standard[i])] = static_cast<std::uint32_t>(i);
    }
    return table;
}();

constexpr std::uint32_t byte_of(char c) {
    return static_cast<unsigned char>(c);
}

std::string encode(std::string_view bytes, std::string_view alphabet, bool padded) {
    std::string text((bytes.size() + 2) / 3 * 4, '=');
    char* to = text.data();
    const char* from = bytes.data();
    std::size_t left = bytes.size();
    for (; left >= 3; left -= 3, from += 3) {
        const std::uint32_t group = byte_of(from[0]) << 16U | byte_of(from[1]) << 8U | byte_of(from[2]);
        *to++ = alphabet[group >> 18U];
        *to++ = alphabet[group >> 12U & 63U];
        *to++ = alphabet[group >> 6U & 63U];
        *to++ = alphabet[group & 63U];
    }
    if (left > 0) {
        const std::uint32_t group = byte_of(from[0]) << 16U | (left > 1 ? byte_of(from[1]) << 8U : 0U);
        *to++ = alphabet[group >> 18U];
        *to++ = alphabet[group >> 12U & 63U];
        if (left > 1) {
            *to++ = alphabet[group >> 6U & 63U];
        }
    }
    if (!padded) {
        text.resize(static_cast<std::size_t>(to - text.data()));
    }
    return text;
}

} // namespace

std::string base64(std::string_view bytes) {
    return encode(bytes, standard, true);
}

std::string base64_url(std::span<const unsigned char> bytes) {
    return encode({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, url_safe, false);
}

std::optional<std::string> from_base64(std::string_view text) {
    if (text.size() % 4 != 0) {
        return std::nullopt;
    }
    std::size_t padding = 0;
    while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') {
        ++padding;
    }
    std::string bytes(text.size() / 4 * 3, '\0');
    char* to = bytes.data();
    std::uint32_t seen = 0;
    const auto group_at = [&seen](const char* digits) {
        const std::uint32_t a = values[byte_of(digits[0])];
        const std::uint32_t b = values[byte_of(digits[1])];
        const std::uint32_t c = values[byte_of(digits[2])];
        const std::uint32_t d = values[byte_of(digits[3])];
        seen |= a | b | c | d;
        return a << 18U | b << 12U | c << 6U | d;
    };
    const auto put = [&to](std::uint32_t group) {
        *to++ = static_cast<char>(group >> 16U & 0xFFU);
        *to++ = static_cast<char>(group >> 8U & 0xFFU);
        *to++ = static_cast<char>(group & 0xFFU);
    };
    const std::size_t whole = text.size() - (padding > 0 ? 4 : 0);
    for (std::size_t i = 0; i < whole; i += 4) {
        put(group_at(text.data() + i));
    }
    if (padding > 0) {
        std::array<char, 4> last{'A', 'A', 'A', 'A'}; // zeros in place of the padding
        std::copy_n(text.data() + whole, 4 - padding, last.data());
        const std::uint32_t group = group_at(last.data());
        if ((group & (padding == 1 ? 0xFFU : 0xFFFFU)) != 0) {
            return std::nullopt; // bits that no byte would get
        }
        put(group);
    }
    if ((seen & no_digit) != 0) {
        return std::nullopt;
    }
    bytes.resize(bytes.size() - padding);
    return bytes;
}

} // namespace sandboxd::core
