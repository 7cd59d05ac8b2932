#include "session/text.hpp"

#include <algorithm>

namespace sandboxd::session {

namespace {
constexpr std::size_t shown_characters = 200;

bool stands_bare(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("@%+=:,./-_").find(c) != std::string_view::npos;
}

void append_quoted(std::string& line, std::string_view word) {
    if (!word.empty() && std::ranges::all_of(word, stands_bare)) {
        line += word;
        return;
    }
    line += '\'';
    for (const char c : word) {
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
