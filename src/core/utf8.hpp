#pragma once

#include <string>
#include <string_view>

namespace sandboxd::core {

/// Well-formed as RFC 3629 says: no overlong forms, no surrogates, nothing above U+10FFFF.
[[nodiscard]] bool is_utf8(std::string_view bytes) noexcept;

/// The text with U+FFFD for every maximal part that is not UTF-8 (what Python's `errors="replace"` makes).
[[nodiscard]] std::string to_utf8(std::string_view bytes);

} // namespace sandboxd::core
