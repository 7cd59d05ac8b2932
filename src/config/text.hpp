#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace sandboxd::config {

/// Without blanks (space, tab, line ends, form feed, vertical tab) at both ends.
[[nodiscard]] std::string_view trimmed(std::string_view text) noexcept;

/// In single quotes, control characters and quotes escaped, cut after 120 bytes: fit for one line of an
/// error.
[[nodiscard]] std::string in_quotes(std::string_view text);

/// A whole number as contract 5.1.1 lets it be written: blanks around, a sign, `_` between digits. Nothing
/// when it is none, or beyond 64 bits.
[[nodiscard]] std::optional<std::int64_t> parse_integer(std::string_view text) noexcept;

/// The same for a number with an optional fraction and exponent; never an infinity or NaN.
[[nodiscard]] std::optional<double> parse_number(std::string_view text);

/// `1 true yes on` / `0 false no off`, any case, blanks around (contract 5.1.1).
[[nodiscard]] std::optional<bool> parse_boolean(std::string_view text);

/// The shortest text of a number that reads back the same, with ".0" for whole ones: 2.0, 0.5.
[[nodiscard]] std::string number_text(double value);

/// How many single-character insertions, removals, replacements or swaps of neighbours turn `a` into `b`.
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

/// The candidate nearest to `word`; nothing when none is near enough to be what was meant.
[[nodiscard]] std::optional<std::string_view> nearest(std::string_view word,
                                                      std::span<const std::string_view> candidates);

/// " Did you mean 'x'?" or nothing.
[[nodiscard]] std::string suggestion(std::string_view word, std::span<const std::string_view> candidates);

/// Joined with ", ".
[[nodiscard]] std::string joined(std::span<const std::string_view> words);

} // namespace sandboxd::config
