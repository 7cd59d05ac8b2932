#include "wire/scalars.hpp"

#include "wire/json_text.hpp"

#include <boost/json.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

namespace sandboxd::wire {
namespace {

namespace json = boost::json;
using std::string_view;

bool is_digit(char c) noexcept {
    return c >= '0' && c <= '9';
}
bool is_letter(char c) noexcept {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool is_session_id(string_view text) noexcept {
    const auto inner = [](char c) { return is_digit(c) || is_letter(c) || c == '.' || c == '_' || c == '-'; };
    return !text.empty() && text.size() <= 64 && (is_digit(text[0]) || is_letter(text[0])) &&
           std::all_of(text.begin(), text.end(), inner);
}

bool is_run_id(string_view text) noexcept {
    const auto inner = [](char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); };
    return text.size() == 32 && std::all_of(text.begin(), text.end(), inner);
}

bool refuse(fault_list& faults, const char* type, const place& at, std::string msg, const json::value& input,
            json::object ctx = {}) {
    faults.add({type, at, std::move(msg), shown_input(input), std::move(ctx)});
    return false;
}

string_view trimmed(string_view text) noexcept {
    constexpr string_view blanks = " \t\n\r\f\v";
    const auto first = text.find_first_not_of(blanks);
    return first == string_view::npos ? string_view()
                                      : text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

/// Without `_`, each of which must stand between two digits.
std::optional<std::string> without_separators(string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '_') {
            out += text[i];
        } else if (i == 0 || i + 1 == text.size() || !is_digit(text[i - 1]) || !is_digit(text[i + 1])) {
            return std::nullopt;
        }
    }
    return out;
}

/// A whole number as text: blanks, sign, separators, and a fraction of zeros. Beyond 64 bits: the nearest
/// that fits.
std::optional<std::int64_t> integer_of(string_view text) {
    auto plain = without_separators(trimmed(text));
    if (!plain) {
        return std::nullopt;
    }
    string_view digits = *plain;
    const auto dot = digits.find('.');
    if (dot != string_view::npos) {
        const string_view fraction = digits.substr(dot + 1);
        if (fraction.empty() || fraction.find_first_not_of('0') != string_view::npos) {
            return std::nullopt;
        }
        digits = digits.substr(0, dot);
    }
    const bool negative = digits.starts_with('-');
    if (negative || digits.starts_with('+')) {
        digits.remove_prefix(1);
    }
    if (digits.empty() || !std::all_of(digits.begin(), digits.end(), is_digit)) {
        return std::nullopt;
    }
    std::int64_t value = 0;
    if (std::from_chars(digits.data(), digits.data() + digits.size(), value).ec != std::errc{}) {
        value = std::numeric_limits<std::int64_t>::max();
    }
    return negative ? -value : value;
}

/// A number as text; "inf" and "nan" are numbers here, refused by the caller.
std::optional<double> number_of(string_view text) {
    const auto plain = without_separators(trimmed(text));
    if (!plain || plain->empty()) {
        return std::nullopt;
    }
    string_view digits = *plain;
    if (digits.starts_with('+') && digits.size() > 1 && digits[1] != '-') {
        digits.remove_prefix(1);
    }
    double value = 0;
    const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (end != digits.data() + digits.size() || failed == std::errc::invalid_argument) {
        return std::nullopt;
    }
    return failed == std::errc{} ? value : std::numeric_limits<double>::infinity();
}

std::string bound_text(double bound) {
    std::string out;
    append_number(out, bound);
    return out.ends_with(".0") ? out.substr(0, out.size() - 2) : out;
}

bool has_nul(string_view text) noexcept {
    return text.find('\0') != string_view::npos;
}

bool refuse_nul(fault_list& faults, const place& at, const json::value& input) {
    json::object context;
    context["error"] = json::object();
    return refuse(faults, "value_error", at, "Value error, must not hold a NUL character", input,
                  std::move(context));
}

bool refuse_count(fault_list& faults, const place& at, const json::value& list, bool too_many,
                  std::size_t bound) {
    const std::size_t actual = list.get_array().size();
    json::object context;
    context["field_type"] = "List";
    context[too_many ? "max_length" : "min_length"] = bound;
    context["actual_length"] = actual;
    return refuse(faults, too_many ? "too_long" : "too_short", at,
                  std::string("List should have at ") + (too_many ? "most " : "least ") +
                      std::to_string(bound) + (bound == 1 ? " item" : " items") + " after validation, not " +
                      std::to_string(actual),
                  list, std::move(context));
}

place below(const place& at, place_part part) {
    place out = at;
    out.push_back(std::move(part));
    return out;
}

} // namespace

const id_pattern session_id_pattern{"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", is_session_id};
const id_pattern run_id_pattern{"^[0-9a-f]{32}$", is_run_id};

bool read_value(const json::value& from, std::string& into, const rules& keep, const place& at,
                fault_list& faults) {
    if (!from.is_string()) {
        return refuse(faults, "string_type", at, "Input should be a valid string", from);
    }
    const string_view text = from.get_string();
    if (keep.pattern != nullptr && !keep.pattern->matches(text)) {
        json::object context;
        context["pattern"] = keep.pattern->text;
        return refuse(faults, "string_pattern_mismatch", at,
                      "String should match pattern '" + std::string(keep.pattern->text) + "'", from,
                      std::move(context));
    }
    if (keep.no_nul && has_nul(text)) {
        return refuse_nul(faults, at, from);
    }
    into = text;
    return true;
}

bool read_value(const json::value& from, std::int64_t& into, const rules& keep, const place& at,
                fault_list& faults) {
    constexpr double beyond = 9223372036854775808.0;
    if (from.is_int64()) {
        into = from.get_int64();
    } else if (from.is_bool()) {
        into = from.get_bool() ? 1 : 0;
    } else if (from.is_double()) {
        const double number = from.get_double();
        if (!std::isfinite(number)) {
            return refuse(faults, "finite_number", at, "Input should be a finite number", from);
        }
        if (number != std::floor(number)) {
            return refuse(faults, "int_from_float", at,
                          "Input should be a valid integer, got a number with a fractional part", from);
        }
        if (number >= beyond || number < -beyond) {
            return refuse(faults, "int_parsing_size", at,
                          "Unable to parse input string as an integer, exceeded maximum size", from);
        }
        into = static_cast<std::int64_t>(number);
    } else if (from.is_string()) {
        const auto number = integer_of(from.get_string());
        if (!number) {
            return refuse(faults, "int_parsing", at,
                          "Input should be a valid integer, unable to parse string as an integer", from);
        }
        into = *number;
    } else {
        return refuse(faults, "int_type", at, "Input should be a valid integer", from);
    }
    if (keep.at_least && into < *keep.at_least) {
        json::object context;
        context["ge"] = *keep.at_least;
        return refuse(faults, "greater_than_equal", at,
                      "Input should be greater than or equal to " + std::to_string(*keep.at_least), from,
                      std::move(context));
    }
    if (keep.above && !(static_cast<double>(into) > *keep.above)) {
        json::object context;
        context["gt"] = static_cast<std::int64_t>(*keep.above);
        return refuse(faults, "greater_than", at, "Input should be greater than " + bound_text(*keep.above),
                      from, std::move(context));
    }
    if (keep.at_most && into > *keep.at_most) {
        json::object context;
        context["le"] = *keep.at_most;
        return refuse(faults, "less_than_equal", at,
                      "Input should be less than or equal to " + std::to_string(*keep.at_most), from,
                      std::move(context));
    }
    return true;
}

bool read_value(const json::value& from, double& into, const rules& keep, const place& at,
                fault_list& faults) {
    if (from.is_number()) {
        into = from.to_number<double>();
    } else if (from.is_bool()) {
        into = from.get_bool() ? 1.0 : 0.0;
    } else if (from.is_string()) {
        const auto number = number_of(from.get_string());
        if (!number) {
            return refuse(faults, "float_parsing", at,
                          "Input should be a valid number, unable to parse string as a number", from);
        }
        into = *number;
    } else {
        return refuse(faults, "float_type", at, "Input should be a valid number", from);
    }
    if (!std::isfinite(into)) {
        return refuse(faults, "finite_number", at, "Input should be a finite number", from);
    }
    if (keep.above && !(into > *keep.above)) {
        json::object context;
        context["gt"] = *keep.above;
        return refuse(faults, "greater_than", at, "Input should be greater than " + bound_text(*keep.above),
                      from, std::move(context));
    }
    return true;
}

bool read_value(const json::value& from, bool& into, const rules&, const place& at, fault_list& faults) {
    const auto unclear = [&] {
        return refuse(faults, "bool_parsing", at,
                      "Input should be a valid boolean, unable to interpret input", from);
    };
    if (from.is_bool()) {
        into = from.get_bool();
        return true;
    }
    constexpr double beyond = 9223372036854775808.0; // what does not fit 64 bits is no boolean at all there
    const auto is_whole = [](double number) {
        return number == std::floor(number) && std::fabs(number) < beyond;
    };
    if (from.is_int64() || (from.is_double() && is_whole(from.get_double()))) {
        const double number = from.to_number<double>();
        if (number != 0.0 && number != 1.0) {
            return unclear();
        }
        into = number == 1.0;
        return true;
    }
    if (!from.is_string()) {
        return refuse(faults, "bool_type", at, "Input should be a valid boolean", from);
    }
    std::string word(from.get_string());
    std::transform(word.begin(), word.end(), word.begin(),
                   [](char c) { return is_letter(c) ? static_cast<char>(c | 0x20) : c; });
    for (const string_view yes : {"true", "t", "yes", "y", "on", "1"}) {
        if (word == yes) {
            into = true;
            return true;
        }
    }
    for (const string_view no : {"false", "f", "no", "n", "off", "0"}) {
        if (word == no) {
            into = false;
            return true;
        }
    }
    return unclear();
}

bool read_value(const json::value& from, std::vector<std::string>& into, const rules& keep, const place& at,
                fault_list& faults) {
    if (!from.is_array()) {
        return refuse(faults, "list_type", at, "Input should be a valid list", from);
    }
    const auto& items = from.get_array();
    if (keep.max_items && items.size() > *keep.max_items) {
        return refuse_count(faults, at, from, true, *keep.max_items);
    }
    bool good = true;
    into.clear();
    for (std::size_t i = 0; i < items.size(); ++i) {
        rules of_item;
        of_item.no_nul = keep.no_nul;
        of_item.pattern = keep.item_pattern;
        good = read_value(items[i], into.emplace_back(), of_item, below(at, static_cast<std::int64_t>(i)),
                          faults) &&
               good;
    }
    if (good && items.size() < keep.min_items) {
        return refuse_count(faults, at, from, false, keep.min_items);
    }
    return good;
}

bool read_value(const json::value& from, std::vector<std::pair<std::string, std::string>>& into,
                const rules& keep, const place& at, fault_list& faults) {
    if (!from.is_object()) {
        return refuse(faults, "dict_type", at, "Input should be a valid dictionary", from);
    }
    bool good = true;
    into.clear();
    for (const auto& [key, value] : from.get_object()) {
        constexpr std::size_t shown = 256;
        const place here = below(at, std::string(string_view(key).substr(0, shown)));
        if (keep.no_nul && has_nul(key)) {
            good = refuse_nul(faults, here, json::value(key));
            continue;
        }
        rules of_value;
        of_value.no_nul = keep.no_nul;
        into.emplace_back(std::string(key), std::string());
        good = read_value(value, into.back().second, of_value, here, faults) && good;
    }
    return good;
}

} // namespace sandboxd::wire
