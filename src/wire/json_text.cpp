#include "wire/json_text.hpp"

#include "core/utf8.hpp"
#include "wire/json_scan.hpp"

#include <boost/json.hpp>

#include <array>
#include <charconv>
#include <cmath>

namespace sandboxd::wire {
namespace {

/// The first byte from `at` on that can't stand as it is without a look (it is special, or not ASCII), or the
/// end.
std::size_t skip_plain(std::string_view text, std::size_t at) noexcept {
    return pass_over(
        text, at, [](std::uint64_t word) { return (word & top_bits) | special_bytes(word); },
        [](char c) { return is_special(c) || static_cast<unsigned char>(c) >= 0x80; });
}

void append_escape(std::string& out, char c) {
    switch (c) {
    case '"':
        out += "\\\"";
        return;
    case '\\':
        out += "\\\\";
        return;
    case '\n':
        out += "\\n";
        return;
    case '\r':
        out += "\\r";
        return;
    case '\t':
        out += "\\t";
        return;
    case '\b':
        out += "\\b";
        return;
    case '\f':
        out += "\\f";
        return;
    default:
        break;
    }
    constexpr std::string_view hex = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(c);
    out += "\\u00";
    out += hex[byte >> 4U];
    out += hex[byte & 15U];
}

template <class N>
void append_integer(std::string& out, N value) {
    std::array<char, 24> buffer{};
    out.append(buffer.data(), std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr);
}

} // namespace

void append_string(std::string& out, std::string_view text) {
    // An eighth more for escapes: one allocation for ordinary output.
    out.reserve(out.size() + text.size() + text.size() / 8 + 2);
    out += '"';
    std::size_t copied = 0;
    std::size_t at = skip_plain(text, 0);
    while (at < text.size()) {
        const bool ascii = static_cast<unsigned char>(text[at]) < 0x80;
        const auto sequence = ascii ? core::utf8_sequence{1, true} : core::next_sequence(text.substr(at));
        if (ascii || !sequence.valid) {
            out.append(text.data() + copied, at - copied);
            copied = at + sequence.length;
            if (ascii) {
                append_escape(out, text[at]);
            } else {
                out.append(core::replacement);
            }
        }
        at = skip_plain(text, at + sequence.length);
    }
    out.append(text.data() + copied, text.size() - copied);
    out += '"';
}

void append_number(std::string& out, std::int64_t value) {
    append_integer(out, value);
}
void append_number(std::string& out, std::uint64_t value) {
    append_integer(out, value);
}

void append_number(std::string& out, double value) {
    if (!std::isfinite(value)) {
        out += "null";
        return;
    }
    // Whole numbers up to 10^15 are written out, as a person would; to_chars alone turns 1e5 into an
    // exponent.
    constexpr double plainly = 1e15;
    std::array<char, 40> buffer{};
    char* const end = buffer.data() + buffer.size();
    if (value == std::floor(value) && std::fabs(value) < plainly) {
        out.append(buffer.data(), std::to_chars(buffer.data(), end, value, std::chars_format::fixed, 1).ptr);
        return;
    }
    out.append(buffer.data(), std::to_chars(buffer.data(), end, value).ptr);
}

namespace {

/// Stops once `out` has grown past `limit`.
void append_up_to(std::string& out, const boost::json::value& value, std::size_t limit) {
    if (out.size() > limit) {
        return;
    }
    const auto cut = [limit](std::string_view text) { return text.substr(0, limit); };
    switch (value.kind()) {
    case boost::json::kind::null:
        out += "null";
        return;
    case boost::json::kind::bool_:
        out += value.get_bool() ? "true" : "false";
        return;
    case boost::json::kind::int64:
        append_number(out, value.get_int64());
        return;
    case boost::json::kind::uint64:
        append_number(out, value.get_uint64());
        return;
    case boost::json::kind::double_:
        append_number(out, value.get_double());
        return;
    case boost::json::kind::string:
        append_string(out, cut(value.get_string()));
        return;
    case boost::json::kind::array: {
        const char* separator = "[";
        for (const auto& item : value.get_array()) {
            if (out.size() > limit) {
                return;
            }
            out += separator;
            append_up_to(out, item, limit);
            separator = ",";
        }
        out += value.get_array().empty() ? "[]" : "]";
        return;
    }
    case boost::json::kind::object: {
        const char* separator = "{";
        for (const auto& [key, item] : value.get_object()) {
            if (out.size() > limit) {
                return;
            }
            out += separator;
            append_string(out, cut(key));
            out += ':';
            append_up_to(out, item, limit);
            separator = ",";
        }
        out += value.get_object().empty() ? "{}" : "}";
        return;
    }
    }
}

} // namespace

void append_value(std::string& out, const boost::json::value& value) {
    append_up_to(out, value, std::string::npos);
}

bool append_value_within(std::string& out, const boost::json::value& value, std::size_t limit) {
    const std::size_t most = out.size() + limit;
    append_up_to(out, value, most);
    return out.size() <= most;
}

} // namespace sandboxd::wire
