#include "text/pdf_pages.hpp"

#include "core/utf8.hpp"

#include <array>
#include <cstdint>
#include <utility>

namespace sandboxd::text {

namespace {

constexpr std::string_view head_end = "\n<pre>\n";
constexpr std::string_view foot = "</pre>\n</body>\n</html>\n";

std::string unescaped(std::string_view html) {
    constexpr std::array<std::pair<std::string_view, char>, 5> entities{
        {{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}}};
    std::string out;
    for (std::size_t at = 0; at < html.size();) {
        bool found = false;
        for (const auto& [name, meaning] : entities) {
            if (html.substr(at).starts_with(name)) {
                out += meaning;
                at += name.size();
                found = true;
                break;
            }
        }
        if (!found) {
            out += html[at++];
        }
    }
    return out;
}

/// What stands between `before` and `after` in the head; empty when that is not there.
std::string field(std::string_view head, std::string_view before, std::string_view after) {
    const auto at = head.find(before);
    if (at == std::string_view::npos) {
        return {};
    }
    head.remove_prefix(at + before.size());
    return unescaped(head.substr(0, head.find(after)));
}

std::string metadata(std::string_view head) {
    std::string out;
    const auto add = [&out](std::string_view name, const std::string& value) {
        if (!value.empty()) {
            out.append(name).append(": ").append(value).append("\n");
        }
    };
    add("Title", field(head, "<title>", "</title>"));
    add("Author", field(head, "<meta name=\"Author\" content=\"", "\"/>"));
    add("Subject", field(head, "<meta name=\"Subject\" content=\"", "\"/>"));
    return out.empty() ? out : out + "\n";
}

/// Without blanks and line ends at either end.
std::string_view stripped(std::string_view text) {
    constexpr std::string_view blank = " \t\r\n\v\f";
    const auto first = text.find_first_not_of(blank);
    if (first == std::string_view::npos) {
        return {};
    }
    return text.substr(first, text.find_last_not_of(blank) - first + 1);
}

/// The character before `end`.
std::uint32_t last_character(std::string_view text) {
    std::size_t at = text.size() - 1;
    while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U) {
        --at;
    }
    std::uint32_t value = static_cast<unsigned char>(text[at]);
    if (value >= 0xC0) {
        value &= 0x3FU >> (text.size() - at - 1);
    }
    for (++at; at < text.size(); ++at) {
        value = (value << 6U) | (static_cast<unsigned char>(text[at]) & 0x3FU);
    }
    return value;
}

/// A letter, a digit or an underscore. Beyond Latin-1 everything but the blocks of punctuation and symbols.
bool is_word(std::uint32_t c) {
    if (c < 0x80) {
        return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
    }
    if (c < 0x100) {
        return c == 0xAA || c == 0xB5 || c == 0xBA || (c >= 0xC0 && c != 0xD7 && c != 0xF7);
    }
    return !(c >= 0x2000 && c < 0x2C00) && !(c >= 0x3000 && c < 0x3040) && !(c >= 0xE000 && c < 0xF900) &&
           c < 0xFFF0;
}

/// Runs of blanks to one, and none around line ends.
std::string squeezed(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    for (const char c : text) {
        if (c == ' ' && (out.empty() || out.back() == ' ' || out.back() == '\n')) {
            continue;
        }
        if (c == '\n' && !out.empty() && out.back() == ' ') {
            out.pop_back();
        }
        if (c == '\n' && out.ends_with("\n\n")) {
            continue;
        }
        out += c;
    }
    return out;
}

} // namespace

std::string clean_pdf_text(std::string_view text) {
    std::string lines(text);
    for (char& c : lines) {
        c = c == '\f' ? '\n' : c;
    }
    const std::string even = squeezed(lines);
    std::string out;
    out.reserve(even.size());
    for (std::size_t at = 0; at < even.size(); ++at) {
        if (even[at] == '\n' && out.size() > 1 && out.back() == '-' && at + 1 < even.size()) {
            const std::string_view before = std::string_view(out).substr(0, out.size() - 1);
            const std::string_view after = std::string_view(even).substr(at + 1);
            if (is_word(last_character(before)) &&
                is_word(last_character(after.substr(0, core::next_sequence(after).length)))) {
                out.pop_back();
                continue;
            }
        }
        out += even[at];
    }
    return out;
}

result<std::string> pdf_pages(std::string_view printed) {
    const auto head_length = printed.find(head_end);
    if (head_length == std::string_view::npos || !printed.ends_with(foot)) {
        return error{errc::invalid, "the output of pdftotext is not what it should be"};
    }
    std::string out = metadata(printed.substr(0, head_length));
    std::string_view body = printed.substr(head_length + head_end.size());
    body.remove_suffix(foot.size());
    std::size_t with_text = 0;
    for (std::size_t page = 1; !body.empty(); ++page) {
        const auto end = body.find('\f');
        const std::string text = clean_pdf_text(body.substr(0, end));
        body.remove_prefix(end == std::string_view::npos ? body.size() : end + 1);
        if (stripped(text).empty()) {
            continue;
        }
        ++with_text;
        out += "--- Page " + std::to_string(page) + " ---\n";
        out.append(stripped(text)).append("\n\n");
    }
    if (with_text == 0) {
        return error{errc::invalid, "the PDF has no extractable text"};
    }
    return std::string(stripped(out));
}

} // namespace sandboxd::text
