#include "router/text.hpp"

#include "core/utf8.hpp"

#include <cstddef>

namespace sandboxd::router {

namespace {

int digit(char c) noexcept {
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    if (c >= 'A' && c <= 'F') {
        return c - 'A' + 10;
    }
    return -1;
}

std::string unescape(std::string_view text, bool plus_is_space) {
    std::string bytes;
    bytes.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        const bool escape = text[i] == '%' && i + 2 < text.size();
        const int high = escape ? digit(text[i + 1]) : -1;
        const int low = escape ? digit(text[i + 2]) : -1;
        if (high >= 0 && low >= 0) {
            bytes.push_back(static_cast<char>(high * 16 + low));
            i += 2;
        } else {
            bytes.push_back(plus_is_space && text[i] == '+' ? ' ' : text[i]);
        }
    }
    return bytes;
}

bool unescaped_in_path(char c) noexcept {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           std::string_view("-._~/!$&'()*+,;=:@").find(c) != std::string_view::npos;
}

} // namespace

std::string decode(std::string_view text) {
    return core::to_utf8(unescape(text, false));
}

std::string decode_form(std::string_view text) {
    return core::to_utf8(unescape(text, true));
}

std::string encode_path(std::string_view path) {
    static constexpr std::string_view digits = "0123456789ABCDEF";
    std::string text;
    text.reserve(path.size());
    for (const char c : path) {
        if (unescaped_in_path(c)) {
            text.push_back(c);
        } else {
            const auto byte = static_cast<unsigned char>(c);
            text.push_back('%');
            text.push_back(digits[byte >> 4U]);
            text.push_back(digits[byte & 15U]);
        }
    }
    return text;
}

} // namespace sandboxd::router
