#include "agent/text_edit.hpp"

#include "agent/utf8.hpp"

#include <algorithm>
#include <cstring>

namespace sandboxd::agent {

namespace {

constexpr std::size_t nowhere = std::string_view::npos;

/// Where `text` begins next, at `from` or later.
std::size_t position(std::string_view content, std::string_view text, std::size_t from) {
    if (from > content.size()) {
        return nowhere;
    }
    if (text.empty()) {
        const auto starts = [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80; };
        const auto* const at =
            std::find_if(content.begin() + static_cast<std::ptrdiff_t>(from), content.end(), starts);
        return static_cast<std::size_t>(at - content.begin());
    }
    const void* const found = memmem(content.data() + from, content.size() - from, text.data(), text.size());
    return found == nullptr ? nowhere
                            : static_cast<std::size_t>(static_cast<const char*>(found) - content.data());
}

std::uint64_t occurrences(std::string_view content, std::string_view text) {
    const auto step = std::max<std::size_t>(text.size(), 1);
    std::uint64_t out = 0;
    for (auto at = position(content, text, 0); at != nowhere; at = position(content, text, at + step)) {
        ++out;
    }
    return out;
}

std::string replace(std::string_view content, std::string_view text, std::string_view with,
                    std::size_t size) {
    std::string out;
    out.reserve(size);
    const auto step = std::max<std::size_t>(text.size(), 1);
    std::size_t done = 0;
    for (auto at = position(content, text, 0); at != nowhere; at = position(content, text, at + step)) {
        out.append(content.substr(done, at - done)).append(with);
        done = at + text.size();
    }
    out.append(content.substr(done));
    return out;
}

bool all_crlf(std::string_view content) {
    bool any = false;
    for (auto at = content.find('\n'); at != nowhere; at = content.find('\n', at + 1)) {
        if (at == 0 || content[at - 1] != '\r') {
            return false;
        }
        any = true;
    }
    return any;
}

std::string with_crlf(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '\n' && (i == 0 || text[i - 1] != '\r')) {
            out.push_back('\r');
        }
        out.push_back(text[i]);
    }
    return out;
}

text_edit apply(std::string_view content, std::string_view old_text, std::string_view new_text, bool all,
                std::size_t most) {
    text_edit out;
    out.occurrences = occurrences(content, old_text);
    if (out.occurrences == 0 || (out.occurrences > 1 && !all)) {
        return out;
    }
    const auto rest = content.size() - static_cast<std::size_t>(out.occurrences) * old_text.size();
    if (rest > most || (!new_text.empty() && out.occurrences > (most - rest) / new_text.size())) {
        out.too_large = true;
        return out;
    }
    const auto size = rest + static_cast<std::size_t>(out.occurrences) * new_text.size();
    out.content = replace(content, old_text, new_text, size);
    out.applied = true;
    return out;
}

/// Control characters other than those that stand in texts: blanks, backspace, escape.
bool is_odd_control(std::uint32_t code) {
    return code < 0x20 && !(code >= 8 && code <= 13) && code != 27;
}

} // namespace

text_edit edit_text(std::string_view content, std::string_view old_text, std::string_view new_text, bool all,
                    std::size_t most) {
    auto out = apply(content, old_text, new_text, all, most);
    if (out.occurrences == 0 && old_text.find('\n') != nowhere && all_crlf(content)) {
        out = apply(content, with_crlf(old_text), with_crlf(new_text), all, most);
    }
    return out;
}

bool looks_binary(std::string_view content) {
    std::uint64_t characters = 0;
    std::uint64_t bad = 0;
    bool odd = false;
    for (auto rest = content; !rest.empty();) {
        const auto one = first_character(rest);
        ++characters;
        bad += one.valid ? 0 : 1;
        odd = odd || is_odd_control(one.code);
        rest.remove_prefix(one.size);
    }
    return odd && bad >= 2 && bad * 100 >= characters;
}

} // namespace sandboxd::agent
