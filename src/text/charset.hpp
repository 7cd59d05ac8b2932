#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace sandboxd::text {

// Encodings other than UTF-8. Which one it is, is guessed by uchardet; the conversion is the C library's
// iconv: strict, there already, and with no data of its own in memory, while ICU would bring 30 MB for the
// same tables. Only encodings of a fixed list are converted, whatever the guess says.

/// The encoding of the first 32 KiB, by its name for iconv; empty when it can't be told or is not in the
/// list.
[[nodiscard]] std::string_view detect(std::string_view bytes);

/// In UTF-8; nothing when a byte has no meaning in `charset`.
[[nodiscard]] std::optional<std::string> convert(std::string_view charset, std::string_view bytes);

/// In UTF-8, U+FFFD for each byte without a meaning. Nothing when `charset` is unknown to this host.
[[nodiscard]] std::optional<std::string> convert_replacing(std::string_view charset, std::string_view bytes);

/// What no other rule can tell: Windows-1252 where every byte has a meaning there, else Latin-1, in which
/// every byte is the character of that number.
[[nodiscard]] std::string from_western(std::string_view bytes);
[[nodiscard]] std::string from_latin1(std::string_view bytes);

} // namespace sandboxd::text
