#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace sandboxd::core {

/// Standard alphabet with padding, no line breaks.
[[nodiscard]] std::string base64(std::string_view bytes);

/// URL-safe alphabet without padding: 32 bytes make 43 characters.
[[nodiscard]] std::string base64_url(std::span<const unsigned char> bytes);

/// Strict: standard alphabet, correct padding, nothing else (contract 1.5.4 `write`; N19.5 lets stray bits be
/// refused).
[[nodiscard]] std::optional<std::string> from_base64(std::string_view text);

} // namespace sandboxd::core
