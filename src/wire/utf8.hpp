#pragma once

// The wire room: JSON of every model that clients see, in and out. Pure functions over text: no sockets, no
// clocks, no executor; safe from any thread.

#include <cstddef>
#include <string>
#include <string_view>

namespace sandboxd::wire {

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

[[nodiscard]] bool is_utf8(std::string_view bytes) noexcept;

/// Decodes as Python's errors="replace" does: each maximal ill-formed subpart becomes U+FFFD
/// (contract 3.2.2, 3.12.1). Valid text is handed through without a copy.
[[nodiscard]] std::string decode_utf8_replace(std::string bytes);

/// How many characters valid UTF-8 holds.
[[nodiscard]] std::size_t count_characters(std::string_view text) noexcept;

} // namespace sandboxd::wire
