#include "agent/glob_pattern.hpp"

#include "agent/utf8.hpp"

#include <algorithm>
#include <cctype>

namespace sandboxd::agent {

namespace {

constexpr std::size_t nowhere = SIZE_MAX;
/// Bytes that are no UTF-8 get codes of their own, so that they are in no range of characters.
constexpr std::uint32_t first_bad = 0x110000;

std::uint32_t code_of(const character& one) {
    return one.valid ? one.code : first_bad + one.code;
}

using test = int (*)(int);

test class_named(std::string_view name) {
    struct entry {
        std::string_view name;
        test function;
    };
    static constexpr entry all[] = {{"alpha", isalpha}, {"digit", isdigit}, {"alnum", isalnum},
                                    {"upper", isupper}, {"lower", islower}, {"space", isspace},
                                    {"blank", isblank}, {"punct", ispunct}, {"print", isprint},
                                    {"graph", isgraph}, {"cntrl", iscntrl}, {"xdigit", isxdigit}};
    for (const auto& one : all) {
        if (one.name == name) {
            return one.function;
        }
    }
    return nullptr;
}

} // namespace

void character_set::add(std::uint32_t from, std::uint32_t to) {
    if (from <= to) {
        ranges_.emplace_back(from, to);
    }
}

bool character_set::add_class(std::string_view name) {
    const auto function = class_named(name);
    for (std::uint32_t code = 0; function != nullptr && code < 128; ++code) {
        if (function(static_cast<int>(code)) != 0) {
            add(code, code);
        }
    }
    return function != nullptr;
}

bool character_set::contains(std::uint32_t code) const {
    const bool in = std::any_of(ranges_.begin(), ranges_.end(),
                                [code](const auto& one) { return code >= one.first && code <= one.second; });
    return in != negated_;
}

std::vector<std::pair<std::uint32_t, std::uint32_t>> character_set::ranges() const {
    auto sorted = ranges_;
    std::sort(sorted.begin(), sorted.end());
    std::vector<std::pair<std::uint32_t, std::uint32_t>> out;
    for (const auto& one : sorted) {
        if (!out.empty() && one.first <= out.back().second + 1) {
            out.back().second = std::max(out.back().second, one.second);
        } else {
            out.push_back(one);
        }
    }
    return out;
}

glob_pattern::glob_pattern(std::string_view pattern) {
    for (std::size_t at = 0; at < pattern.size();) {
        const char byte = pattern[at];
        if (byte == '*') {
            if (tokens_.empty() || tokens_.back().what != kind::star) {
                tokens_.push_back({.what = kind::star});
            }
            ++at;
        } else if (byte == '?') {
            tokens_.push_back({.what = kind::any});
            ++at;
        } else if (byte == '[' && read_set(pattern, at)) {
            tokens_.push_back({.what = kind::set, .set = static_cast<std::uint32_t>(sets_.size() - 1)});
        } else {
            at += byte == '\\' && at + 1 < pattern.size() ? 1 : 0;
            tokens_.push_back({.what = kind::byte, .byte = pattern[at++]});
        }
    }
    for (auto one = tokens_.rbegin(); one != tokens_.rend() && one->what == kind::byte; ++one) {
        tail_.push_back(one->byte);
    }
    std::reverse(tail_.begin(), tail_.end());
}

/// The bracket expression at `at`; false when it is none, so that the bracket stands for itself.
bool glob_pattern::read_set(std::string_view pattern, std::size_t& at) {
    character_set set;
    auto rest = pattern.substr(at + 1);
    const bool negated = rest.starts_with('!') || rest.starts_with('^');
    rest.remove_prefix(negated ? 1 : 0);
    const auto take = [&rest] {
        rest.remove_prefix(rest.size() > 1 && rest[0] == '\\' ? 1 : 0);
        const auto one = first_character(rest);
        rest.remove_prefix(one.size);
        return code_of(one);
    };
    for (bool first = true; first || !rest.starts_with(']'); first = false) {
        if (rest.empty()) {
            return false;
        }
        const auto end = rest.starts_with("[:") ? rest.find(":]", 2) : std::string_view::npos;
        if (end != std::string_view::npos) {
            if (!set.add_class(rest.substr(2, end - 2))) {
                return false;
            }
            rest.remove_prefix(end + 2);
            continue;
        }
        const auto from = take();
        if (rest.size() > 1 && rest[0] == '-' && rest[1] != ']') {
            rest.remove_prefix(1);
            set.add(from, take());
        } else {
            set.add(from, from);
        }
    }
    if (negated) {
        set.negate();
    }
    sets_.push_back(std::move(set));
    at = pattern.size() - rest.size() + 1;
    return true;
}

/// How many bytes at the front of `rest` a token that is no star takes; nowhere when it does not match.
std::size_t glob_pattern::step(const token& one, std::string_view rest) const {
    if (rest.empty()) {
        return nowhere;
    }
    if (one.what == kind::byte) {
        return rest[0] == one.byte ? 1 : nowhere;
    }
    const auto next = first_character(rest);
    return one.what == kind::any || sets_[one.set].contains(code_of(next)) ? next.size : nowhere;
}

bool glob_pattern::matches(std::string_view text) const {
    if (!text.ends_with(tail_)) {
        return false;
    }
    std::size_t at = 0;
    std::size_t token_at = 0;
    std::size_t star = nowhere; ///< the last star passed, and where its text ends so far
    std::size_t star_end = 0;
    while (at < text.size() || token_at < tokens_.size()) {
        if (token_at < tokens_.size() && tokens_[token_at].what == kind::star) {
            star = token_at++;
            star_end = at;
            continue;
        }
        const auto taken = token_at < tokens_.size() ? step(tokens_[token_at], text.substr(at)) : nowhere;
        if (taken != nowhere) {
            at += taken;
            ++token_at;
        } else if (star != nowhere && star_end < text.size()) {
            star_end += first_character(text.substr(star_end)).size;
            at = star_end;
            token_at = star + 1;
        } else {
            return false;
        }
    }
    return true;
}

} // namespace sandboxd::agent
