#include "core/random.hpp"

#include <cerrno>
#include <cstdlib>
#include <sys/random.h>
#include <vector>

namespace sandboxd::core {

void random_bytes(std::span<unsigned char> out) {
    while (!out.empty()) {
        const auto got = ::getrandom(out.data(), out.size(), 0);
        if (got < 0) {
            if (errno == EINTR) {
                continue;
            }
            std::abort();
        }
        out = out.subspan(static_cast<std::size_t>(got));
    }
}

std::string random_hex(std::size_t bytes) {
    std::vector<unsigned char> raw(bytes);
    random_bytes(raw);
    return to_hex(raw);
}

std::string random_uuid() {
    std::array<unsigned char, 16> raw{};
    random_bytes(raw);
    raw[6] = static_cast<unsigned char>((raw[6] & 0x0FU) | 0x40U);
    raw[8] = static_cast<unsigned char>((raw[8] & 0x3FU) | 0x80U);
    std::string text = to_hex(raw);
    for (const std::size_t at : {20U, 16U, 12U, 8U}) {
        text.insert(at, 1, '-');
    }
    return text;
}

std::string to_hex(std::span<const unsigned char> bytes) {
    static constexpr std::string_view digits = "0123456789abcdef";
    std::string text;
    text.reserve(bytes.size() * 2);
    for (const unsigned char byte : bytes) {
        text.push_back(digits[byte >> 4U]);
        text.push_back(digits[byte & 15U]);
    }
    return text;
}

namespace {
int digit(char c) {
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
} // namespace

bool from_hex(std::string_view text, std::span<unsigned char> out) {
    if (text.size() != out.size() * 2) {
        return false;
    }
    for (std::size_t i = 0; i < out.size(); ++i) {
        const int high = digit(text[2 * i]);
        const int low = digit(text[2 * i + 1]);
        if (high < 0 || low < 0) {
            return false;
        }
        out[i] = static_cast<unsigned char>(high * 16 + low);
    }
    return true;
}

} // namespace sandboxd::core
