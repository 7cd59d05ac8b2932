#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sandboxd::core {

/// What stands for bytes that are no UTF-8: U+FFFD.
inline constexpr std::string_view replacement = "\xEF\xBF\xBD";

/// The sequence at the start of `bytes`, which must not be empty.
struct utf8_sequence {
    std::size_t length; ///< of the character; of the maximal ill-formed subpart when it is none
    bool valid;
};
[[nodiscard]] utf8_sequence next_sequence(std::string_view bytes) noexcept;

/// How many bytes from the start on are ASCII. Eight at a time.
[[nodiscard]] std::size_t ascii_prefix(std::string_view bytes) noexcept;

/// How many bytes from the start on are valid UTF-8.
[[nodiscard]] std::size_t valid_prefix(std::string_view bytes) noexcept;

/// Well-formed as RFC 3629 says: no overlong forms, no surrogates, nothing above U+10FFFF.
[[nodiscard]] bool is_utf8(std::string_view bytes) noexcept;

/// The text with U+FFFD for every maximal part that is not UTF-8, as Python's errors="replace" has it
/// (contract 3.2.2, 3.12.1). Valid text is handed through without a copy.
[[nodiscard]] std::string to_utf8(std::string bytes);

/// How many characters valid UTF-8 holds.
[[nodiscard]] std::size_t count_characters(std::string_view text) noexcept;

} // namespace sandboxd::core
