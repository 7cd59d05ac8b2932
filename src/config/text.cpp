#include "config/text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <vector>

namespace sandboxd::config {
namespace {

constexpr std::string_view blanks = " \t\n\r\f\v";

bool is_digit(char c) noexcept {
    return c >= '0' && c <= '9';
}

/// Drops `_` that stand between two digits; nothing when one stands elsewhere.
std::optional<std::string> without_separators(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '_') {
            out.push_back(text[i]);
        } else if (i == 0 || i + 1 == text.size() || !is_digit(text[i - 1]) || !is_digit(text[i + 1])) {
            return std::nullopt;
        }
    }
    return out;
}

std::string lower(std::string_view text) {
    std::string out(text);
    std::transform(out.begin(), out.end(), out.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
    return out;
}

} // namespace

std::string_view trimmed(std::string_view text) noexcept {
    const auto first = text.find_first_not_of(blanks);
    if (first == std::string_view::npos) {
        return {};
    }
    return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

std::string in_quotes(std::string_view text) {
    constexpr std::size_t shown = 120;
    constexpr std::string_view hex = "0123456789abcdef";
    std::string out = "'";
    for (const char c : text.substr(0, shown)) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte < 0x20 || byte == 0x7F) {
            out += "\\x";
            out += hex[byte >> 4U];
            out += hex[byte & 15U];
        } else {
            if (c == '\'' || c == '\\') {
                out += '\\';
            }
            out += c;
        }
    }
    return out + (text.size() > shown ? "...'" : "'");
}

std::optional<std::int64_t> parse_integer(std::string_view text) noexcept {
    text = trimmed(text);
    const bool negative = !text.empty() && text.front() == '-';
    if (negative || (!text.empty() && text.front() == '+')) {
        text.remove_prefix(1);
    }
    if (text.empty()) {
        return std::nullopt;
    }
    constexpr std::uint64_t largest = std::numeric_limits<std::int64_t>::max();
    std::uint64_t value = 0;
    bool after_digit = false;
    for (const char c : text) {
        if (c == '_' && after_digit) {
            after_digit = false;
            continue;
        }
        if (!is_digit(c)) {
            return std::nullopt;
        }
        after_digit = true;
        value = value * 10 + static_cast<std::uint64_t>(c - '0');
        if (value > largest) {
            return std::nullopt;
        }
    }
    if (!after_digit) {
        return std::nullopt;
    }
    const auto magnitude = static_cast<std::int64_t>(value);
    return negative ? -magnitude : magnitude;
}

std::optional<double> parse_number(std::string_view text) {
    const auto plain = without_separators(trimmed(text));
    if (!plain) {
        return std::nullopt;
    }
    std::string_view digits = *plain;
    if (digits.starts_with('+')) {
        digits.remove_prefix(1);
        if (digits.starts_with('-')) {
            return std::nullopt;
        }
    }
    double value = 0;
    const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (fault != std::errc{} || end != digits.data() + digits.size() || !std::isfinite(value)) {
        return std::nullopt;
    }
    return value;
}

std::optional<bool> parse_boolean(std::string_view text) {
    constexpr std::array<std::string_view, 4> yes{"1", "true", "yes", "on"};
    constexpr std::array<std::string_view, 4> no{"0", "false", "no", "off"};
    const std::string word = lower(trimmed(text));
    if (std::find(yes.begin(), yes.end(), word) != yes.end()) {
        return true;
    }
    if (std::find(no.begin(), no.end(), word) != no.end()) {
        return false;
    }
    return std::nullopt;
}

std::string number_text(double value) {
    std::array<char, 32> buffer{};
    const auto [end, fault] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
    std::string out(buffer.data(), fault == std::errc{} ? end : buffer.data());
    if (out.find_first_of(".en") == std::string::npos) {
        out += ".0";
    }
    return out;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> before(b.size() + 1);
    std::vector<std::size_t> above(b.size() + 1);
    std::vector<std::size_t> row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) {
        above[j] = j;
    }
    for (std::size_t i = 1; i <= a.size(); ++i) {
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t replaced = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
            row[j] = std::min({above[j] + 1, row[j - 1] + 1, replaced});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                row[j] = std::min(row[j], before[j - 2] + 1);
            }
        }
        std::swap(before, above);
        std::swap(above, row);
    }
    return above[b.size()];
}

std::optional<std::string_view> nearest(std::string_view word, std::span<const std::string_view> candidates) {
    constexpr std::size_t longest = 64; // no name of ours is longer, and the work is quadratic
    if (word.size() > longest) {
        return std::nullopt;
    }
    const std::string wanted = lower(word);
    std::optional<std::string_view> best;
    std::size_t best_distance = std::max<std::size_t>(1, wanted.size() / 3) + 1;
    for (const std::string_view candidate : candidates) {
        const std::size_t distance = edit_distance(wanted, candidate);
        if (distance < best_distance) {
            best = candidate;
            best_distance = distance;
        }
    }
    return best;
}

std::string suggestion(std::string_view word, std::span<const std::string_view> candidates) {
    const auto best = nearest(word, candidates);
    return best ? " Did you mean " + in_quotes(*best) + "?" : std::string();
}

std::string joined(std::span<const std::string_view> words) {
    std::string out;
    for (const std::string_view word : words) {
        out += out.empty() ? "" : ", ";
        out += word;
    }
    return out;
}

} // namespace sandboxd::config
