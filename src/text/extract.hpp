#pragma once

// text: from the bytes of a file to what `read` answers (contract 3.3). Pure functions, and in `blocking`
// those that start a program; all safe from any thread.

#include "sandboxd/error.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace sandboxd::text {

/// Larger files, and every PDF, are for blocking::extract on a worker: decoding takes a millisecond or more.
inline constexpr std::size_t quick_bytes = std::size_t{64} * 1024;

/// True when quick_extract() may be used on an I/O thread.
[[nodiscard]] bool is_quick(std::string_view path, std::size_t bytes);

/// The text of a file that is not a PDF. errc::invalid with a text for between the brackets of the contract's
/// error: `[Binary File]`.
[[nodiscard]] result<std::string> quick_extract(std::string_view path, std::string_view bytes);

namespace blocking {

/// The text of any file; also `Failed to parse PDF: <cause>`.
[[nodiscard]] result<std::string> extract(std::string_view path, std::string_view bytes);

} // namespace blocking

} // namespace sandboxd::text
