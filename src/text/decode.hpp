#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace sandboxd::text {

// From bytes to UTF-8 (contract 3.3.3, 11.6): strict UTF-8 first, then what a byte order mark says, then
// UTF-8 with a few faults, then the detected encoding. A byte order mark is never part of the text. Takes
// time in proportion to the bytes: large files belong on a worker.

/// For a file whose name says it is text: never fails.
[[nodiscard]] std::string decode_text(std::string_view bytes);

/// For any other file: nothing when it is not text, which is when more than 1 % of the characters (and more
/// than one) can't be decoded.
[[nodiscard]] std::optional<std::string> decode_unknown(std::string_view bytes);

} // namespace sandboxd::text
