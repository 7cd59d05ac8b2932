#pragma once

#include <boost/json/value.hpp>

#include <cstddef>
#include <string_view>
#include <variant>

namespace sandboxd::wire {

/// Why a text is no JSON: the place in characters from 0 and the words, both as Python's json module gives
/// them, since the reference's answers carry them (contract 1.1.5).
struct json_fault {
    std::size_t position = 0;
    std::string_view text;
};

/// The text is deeper or has more values than a request of ours can need.
struct json_too_big {};

inline constexpr std::size_t max_json_depth = 100;
inline constexpr std::size_t max_json_values = 1'000'000;

/// Parses UTF-8 text (which the caller has checked) with the leniency of Python's json module: NaN, Infinity
/// and -Infinity are numbers, a lone surrogate becomes U+FFFD, of a repeated key the last value counts.
/// Integers beyond 64 bits become the nearest that fits, numbers beyond a double infinite. A byte order mark
/// at the start is skipped.
[[nodiscard]] std::variant<boost::json::value, json_fault, json_too_big> parse_json(std::string_view text);

} // namespace sandboxd::wire
