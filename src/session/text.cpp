#include "session/text.hpp"

#include <algorithm>
#include <array>

namespace sandboxd::session {

namespace {
constexpr std::size_t shown_characters = 200;

/// Bytes that hold more than the characters that are shown, however wide those are.
constexpr std::size_t enough = 4 * (shown_characters + 1);

constexpr auto bare_characters = [] {
    std::array<bool, 256> bare{};
    for (const char c :
         std::string_view("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:,./-_")) {
        bare[static_cast<unsigned char>(c)] = true;
    }
    return bare;
}();

bool stands_bare(char c) {
    return bare_characters[static_cast<unsigned char>(c)];
}

void append_quoted(std::string& line, std::string_view word) {
    const auto shown = word.substr(0, enough);
    if (!word.empty() && std::ranges::all_of(word, stands_bare)) {
        line += shown;
        return;
    }
    line += '\'';
    for (const char c : shown) {
        if (c == '\'') {
            line += "'\"'\"'";
        } else {
            line += c;
        }
    }
    line += '\'';
}
} // namespace

std::string shell_join(const std::vector<std::string>& argv) {
    std::string line;
    for (const auto& word : argv) {
        if (!line.empty()) {
            line += ' ';
        }
        append_quoted(line, word);
        if (line.size() >= enough) {
            break;
        }
    }
    return line;
}

std::string shorten(std::string_view text) {
    std::size_t characters = 0;
    for (std::size_t at = 0; at < text.size(); ++at) {
        const bool starts = (static_cast<unsigned char>(text[at]) & 0xC0U) != 0x80U;
        if (starts && ++characters > shown_characters) {
            return std::string(text.substr(0, at)) + "…";
        }
    }
    return std::string(text);
}

} // namespace sandboxd::session
