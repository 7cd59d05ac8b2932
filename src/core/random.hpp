#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace sandboxd::core {

/// Fills the buffer from the kernel's generator. Ends the program when there is none: nothing safe is left to
/// do.
void random_bytes(std::span<unsigned char> out);

/// `bytes` random bytes as lower-case hex digits.
[[nodiscard]] std::string random_hex(std::size_t bytes);

/// A version 4 UUID in the usual form.
[[nodiscard]] std::string random_uuid();

[[nodiscard]] std::string to_hex(std::span<const unsigned char> bytes);

/// False when the text is not exactly twice as many hex digits (either case).
[[nodiscard]] bool from_hex(std::string_view text, std::span<unsigned char> out);

} // namespace sandboxd::core
