#include "text/decode.hpp"

#include "core/utf8.hpp"
#include "text/charset.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace sandboxd::text {

namespace {

using namespace std::string_view_literals;

constexpr std::size_t sample_bytes = 32 * 1024;

struct byte_order_mark {
    std::string_view bytes;
    std::string_view charset;
};

// The longer ones first: the mark of UTF-32LE begins with that of UTF-16LE.
constexpr std::array marks{
    byte_order_mark{"\xFF\xFE\0\0"sv, "UTF-32LE"}, byte_order_mark{"\0\0\xFE\xFF"sv, "UTF-32BE"},
    byte_order_mark{"\xFF\xFE"sv, "UTF-16LE"}, byte_order_mark{"\xFE\xFF"sv, "UTF-16BE"}};

/// The text of bytes that need no guess; takes a UTF-8 mark off the others.
std::optional<std::string> certain(std::string_view& bytes) {
    if (bytes.starts_with("\xEF\xBB\xBF")) {
        bytes.remove_prefix(3);
    }
    if (core::is_utf8(bytes)) {
        return std::string(bytes);
    }
    for (const auto& mark : marks) {
        if (bytes.starts_with(mark.bytes)) {
            return convert_replacing(mark.charset, bytes.substr(mark.bytes.size()));
        }
    }
    return std::nullopt;
}

/// Other encodings hardly ever form sequences of UTF-8, so that many of them and few faults mean UTF-8 with a
/// few bytes broken.
bool is_damaged_utf8(std::string_view bytes) {
    constexpr std::size_t good_for_one_bad = 10;
    std::size_t good = 0;
    std::size_t bad = 0;
    for (std::size_t at = 0; at < bytes.size();) {
        at += core::ascii_prefix(bytes.substr(at));
        if (at == bytes.size()) {
            break;
        }
        const auto sequence = core::next_sequence(bytes.substr(at));
        (sequence.valid ? good : bad) += 1;
        at += sequence.length;
    }
    return good >= good_for_one_bad * bad;
}

bool is_odd_control(char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && "\b\t\n\v\f\r\x1B"sv.find(c) == std::string_view::npos) || byte == 0x7F;
}

/// No text of an encoding without a mark: a NUL, or more than 1 % of controls that texts don't hold.
bool looks_binary(std::string_view bytes) {
    bytes = bytes.substr(0, sample_bytes);
    const auto controls = static_cast<std::size_t>(std::ranges::count_if(bytes, is_odd_control));
    return bytes.find('\0') != std::string_view::npos || controls * 100 > bytes.size();
}

/// Contract 3.3.3 c: below max(1 % of the length, 2) replaced characters.
bool is_good_enough(std::string_view text) {
    std::size_t replaced = 0;
    for (std::size_t at = 0; (at = text.find(core::replacement, at)) != std::string_view::npos;
         at += core::replacement.size()) {
        ++replaced;
    }
    return replaced < 2 || replaced * 100 < core::count_characters(text);
}

} // namespace

std::string decode_text(std::string_view bytes) {
    if (auto text = certain(bytes)) {
        return std::move(*text);
    }
    if (is_damaged_utf8(bytes)) {
        return core::to_utf8(std::string(bytes));
    }
    if (const auto charset = detect(bytes); !charset.empty()) {
        if (auto text = convert(charset, bytes)) {
            return std::move(*text);
        }
    }
    return from_western(bytes);
}

std::optional<std::string> decode_unknown(std::string_view bytes) {
    const bool valid = core::is_utf8(bytes);
    if (auto text = certain(bytes)) {
        return valid || is_good_enough(*text) ? std::move(text) : std::nullopt;
    }
    if (!looks_binary(bytes) && !is_damaged_utf8(bytes)) {
        if (const auto charset = detect(bytes); !charset.empty()) {
            auto text = convert_replacing(charset, bytes);
            if (text && is_good_enough(*text)) {
                return text;
            }
        }
    }
    auto text = core::to_utf8(std::string(bytes));
    return is_good_enough(text) ? std::optional(std::move(text)) : std::nullopt;
}

} // namespace sandboxd::text
