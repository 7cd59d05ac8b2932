#include "core/base64.hpp"

#include <array>
#include <cstdint>

namespace sandboxd::core {

namespace {

constexpr std::string_view standard = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::string_view url_safe = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

constexpr std::array<std::int8_t, 256> reverse_of(std::string_view alphabet) {
    std::array<std::int8_t, 256> table{};
    table.fill(-1);
    for (std::size_t i = 0; i < alphabet.size(); ++i) {
        table[static_cast<unsigned char>(alphabet[i])] = static_cast<std::int8_t>(i);
    }
    return table;
}

std::string encode(std::string_view bytes, std::string_view alphabet, bool padded) {
    std::string text;
    text.reserve((bytes.size() + 2) / 3 * 4);
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        const std::size_t left = bytes.size() - i;
        const auto at = [&](std::size_t k) -> std::uint32_t {
            return k < left ? static_cast<unsigned char>(bytes[i + k]) : 0U;
        };
        const std::uint32_t group = at(0) << 16U | at(1) << 8U | at(2);
        text.push_back(alphabet[group >> 18U]);
        text.push_back(alphabet[group >> 12U & 63U]);
        if (left > 1) {
            text.push_back(alphabet[group >> 6U & 63U]);
        } else if (padded) {
            text.push_back('=');
        }
        if (left > 2) {
            text.push_back(alphabet[group & 63U]);
        } else if (padded) {
            text.push_back('=');
        }
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
    static constexpr auto reverse = reverse_of(standard);
    if (text.size() % 4 != 0) {
        return std::nullopt;
    }
    std::size_t padding = 0;
    while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') {
        ++padding;
    }
    std::string bytes;
    bytes.reserve(text.size() / 4 * 3);
    const std::size_t digits = text.size() - padding;
    std::uint32_t group = 0;
    unsigned bits = 0;
    for (std::size_t i = 0; i < digits; ++i) {
        const auto value = reverse[static_cast<unsigned char>(text[i])];
        if (value < 0) {
            return std::nullopt;
        }
        group = group << 6U | static_cast<std::uint32_t>(value);
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            bytes.push_back(static_cast<char>(group >> bits & 0xFFU));
        }
    }
    if ((group & ((1U << bits) - 1U)) != 0) {
        return std::nullopt;
    }
    return bytes;
}

} // namespace sandboxd::core
