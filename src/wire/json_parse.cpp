// A parser of our own because the reference's 422 names CPython's position and words for what is wrong, and
// because Boost.JSON refuses NaN and lone surrogates, which the contract wants judged field by field (N19.6,
// N19.7).
#include "wire/json_parse.hpp"

#include "core/utf8.hpp"
#include "wire/json_scan.hpp"

#include <boost/json.hpp>

#include <charconv>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string>

namespace sandboxd::wire {
namespace {

namespace json = boost::json;

constexpr std::string_view no_value = "Expecting value";
constexpr std::string_view no_name = "Expecting property name enclosed in double quotes";
constexpr std::string_view no_colon = "Expecting ':' delimiter";
constexpr std::string_view no_comma = "Expecting ',' delimiter";
constexpr std::string_view bad_unicode = "Invalid \\uXXXX escape";

void append_code_point(json::string& out, std::uint32_t code) {
    const auto put = [&out](std::uint32_t byte) { out.push_back(static_cast<char>(byte)); };
    if (code < 0x80) {
        put(code);
    } else if (code < 0x800) {
        put(0xC0U | (code >> 6U));
        put(0x80U | (code & 0x3FU));
    } else if (code < 0x10000) {
        put(0xE0U | (code >> 12U));
        put(0x80U | ((code >> 6U) & 0x3FU));
        put(0x80U | (code & 0x3FU));
    } else {
        put(0xF0U | (code >> 18U));
        put(0x80U | ((code >> 12U) & 0x3FU));
        put(0x80U | ((code >> 6U) & 0x3FU));
        put(0x80U | (code & 0x3FU));
    }
}

class parser {
public:
    explicit parser(std::string_view text) : text_(text) {}

    bool document(json::value& into) {
        skip_blanks();
        if (!value(into, 0)) {
            return false;
        }
        skip_blanks();
        return at_ == text_.size() || fail(at_, "Extra data");
    }

    bool too_big() const { return too_big_; }
    json_fault fault() const { return {core::count_characters(text_.substr(0, fault_at_)), fault_text_}; }

private:
    bool fail(std::size_t at, std::string_view text) {
        fault_at_ = at;
        fault_text_ = text;
        return false;
    }

    bool at(char c) const { return at_ < text_.size() && text_[at_] == c; }
    bool take(std::string_view word) {
        if (!text_.substr(at_).starts_with(word)) {
            return false;
        }
        at_ += word.size();
        return true;
    }

    void skip_blanks() {
        while (at(' ') || at('\t') || at('\n') || at('\r')) {
            ++at_;
        }
    }

    bool value(json::value& into, std::size_t depth) {
        if (depth > max_json_depth || ++values_ > max_json_values) {
            too_big_ = true;
            return false;
        }
        if (at('"')) {
            return string(into.emplace_string());
        }
        if (at('{')) {
            auto& object = into.emplace_object();
            return items('}', [&] { return member(object, depth); });
        }
        if (at('[')) {
            auto& array = into.emplace_array();
            return items(']', [&] { return value(array.emplace_back(nullptr), depth + 1); });
        }
        return constant(into) || number(into) || fail(at_, no_value);
    }

    bool constant(json::value& into) {
        constexpr double infinity = std::numeric_limits<double>::infinity();
        if (take("null")) {
            into = nullptr;
        } else if (take("true")) {
            into = true;
        } else if (take("false")) {
            into = false;
        } else if (take("NaN")) {
            into = std::numeric_limits<double>::quiet_NaN();
        } else if (take("Infinity")) {
            into = infinity;
        } else if (take("-Infinity")) {
            into = -infinity;
        } else {
            return false;
        }
        return true;
    }

    /// What stands between an opening bracket, where it begins, and `close`: items and commas.
    template <class F>
    bool items(char close, F item) {
        ++at_;
        skip_blanks();
        if (at(close)) {
            ++at_;
            return true;
        }
        for (;;) {
            if (!item()) {
                return false;
            }
            skip_blanks();
            if (at(close)) {
                ++at_;
                return true;
            }
            if (!at(',')) {
                return fail(at_, no_comma);
            }
            ++at_;
            skip_blanks();
        }
    }

    bool member(json::object& into, std::size_t depth) {
        if (!at('"')) {
            return fail(at_, no_name);
        }
        json::string key;
        if (!string(key)) {
            return false;
        }
        skip_blanks();
        if (!at(':')) {
            return fail(at_, no_colon);
        }
        ++at_;
        skip_blanks();
        return value(into[key], depth + 1);
    }

    bool string(json::string& into) {
        const std::size_t start = at_++;
        for (;;) {
            const std::size_t run = at_;
            at_ = pass_over(text_, at_, special_bytes, is_special);
            into.append(text_.substr(run, at_ - run));
            if (at_ == text_.size()) {
                return fail(start, "Unterminated string starting at");
            }
            if (at('"')) {
                ++at_;
                return true;
            }
            if (!at('\\')) {
                return fail(at_, "Invalid control character at");
            }
            if (at_ + 1 == text_.size()) {
                return fail(start, "Unterminated string starting at");
            }
            if (!escape(into)) {
                return false;
            }
        }
    }

    bool escape(json::string& into) {
        const char c = text_[at_ + 1];
        if (c == 'u') {
            return unicode(into);
        }
        constexpr std::string_view names = "\"\\/bfnrt";
        constexpr std::string_view meanings = "\"\\/\b\f\n\r\t";
        const auto which = names.find(c);
        if (which == std::string_view::npos) {
            return fail(at_, "Invalid \\escape");
        }
        into.push_back(meanings[which]);
        at_ += 2;
        return true;
    }

    /// The four hex digits after a `\u` at `from`; nothing when they are not there, or nothing follows them.
    std::optional<std::uint32_t> hex_at(std::size_t from) const {
        constexpr std::size_t whole = 6;
        if (text_.substr(from, 2) != "\\u" || from + whole >= text_.size()) {
            return std::nullopt;
        }
        std::uint32_t code = 0;
        const char* const end = text_.data() + from + whole;
        const auto [stop, failed] = std::from_chars(text_.data() + from + 2, end, code, 16);
        return failed == std::errc{} && stop == end ? std::optional(code) : std::nullopt;
    }

    bool unicode(json::string& into) {
        const auto first = hex_at(at_);
        if (!first) {
            return fail(at_ + 1, bad_unicode);
        }
        at_ += 6;
        std::uint32_t code = *first;
        const bool high = code >= 0xD800 && code < 0xDC00;
        const auto second = high ? hex_at(at_) : std::nullopt;
        if (second && *second >= 0xDC00 && *second < 0xE000) {
            code = 0x10000 + ((code - 0xD800) << 10U) + (*second - 0xDC00);
            at_ += 6;
        }
        const bool lone = code >= 0xD800 && code < 0xE000;
        append_code_point(into, lone ? 0xFFFD : code);
        return true;
    }

    std::size_t digits(std::size_t from) const {
        std::size_t end = from;
        while (end < text_.size() && text_[end] >= '0' && text_[end] <= '9') {
            ++end;
        }
        return end - from;
    }

    bool number(json::value& into) {
        std::size_t end = at_ + (at('-') ? 1 : 0);
        const std::size_t whole = digits(end);
        if (whole == 0) {
            return false;
        }
        const bool zero =
            text_[end] == '0'; // nothing may follow a leading zero: "01" is a number and extra data
        end += zero ? 1 : whole;
        bool integer = true;
        if (end < text_.size() && text_[end] == '.' && digits(end + 1) > 0) {
            end += 1 + digits(end + 1);
            integer = false;
        }
        if (end < text_.size() && (text_[end] == 'e' || text_[end] == 'E')) {
            const std::size_t sign =
                end + 1 < text_.size() && (text_[end + 1] == '+' || text_[end + 1] == '-') ? 1 : 0;
            const std::size_t exponent = digits(end + 1 + sign);
            end += exponent > 0 ? 1 + sign + exponent : 0;
            integer = integer && exponent == 0;
        }
        into = integer ? as_integer(text_.substr(at_, end - at_)) : as_double(text_.substr(at_, end - at_));
        at_ = end;
        return true;
    }

    static json::value as_integer(std::string_view digits) {
        std::int64_t number = 0;
        if (std::from_chars(digits.data(), digits.data() + digits.size(), number).ec == std::errc{}) {
            return number;
        }
        return digits.starts_with('-') ? std::numeric_limits<std::int64_t>::min()
                                       : std::numeric_limits<std::int64_t>::max();
    }

    static json::value as_double(std::string_view digits) {
        double number = 0;
        if (std::from_chars(digits.data(), digits.data() + digits.size(), number).ec != std::errc{}) {
            number = std::strtod(std::string(digits).c_str(), nullptr); // tells too large from too small
        }
        return number;
    }

    std::string_view text_;
    std::size_t at_ = 0;
    std::size_t values_ = 0;
    bool too_big_ = false;
    std::size_t fault_at_ = 0;
    std::string_view fault_text_;
};

} // namespace

std::variant<json::value, json_fault, json_too_big> parse_json(std::string_view text) {
    constexpr std::string_view mark = "\xEF\xBB\xBF";
    if (text.starts_with(mark)) {
        text.remove_prefix(mark.size());
    }
    parser from(text);
    // In few large blocks that go back to the system as one, not in a million small ones that stay with the
    // heap.
    json::value out(json::make_shared_resource<json::monotonic_resource>());
    if (from.document(out)) {
        return out;
    }
    if (from.too_big()) {
        return json_too_big{};
    }
    return from.fault();
}

} // namespace sandboxd::wire
