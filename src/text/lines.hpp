#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sandboxd::text {

/// The lines of a text, one after the other, as Python's splitlines sees them (contract 3.3.2): ended by LF,
/// CR LF, CR, VT, FF, 0x1C to 0x1E, NEL, U+2028 or U+2029. A text that ends with an end of line has no empty
/// line behind it.
class line_reader {
public:
    /// `text` is valid UTF-8 and outlives the reader.
    explicit line_reader(std::string_view text) noexcept : left_(text) {}

    /// False at the end. The line comes without its end.
    bool next(std::string_view& line) noexcept;

private:
    std::string_view left_;
};

/// Lines `offset` to `offset + limit - 1` joined by LF, without a final one (contract 3.3.1); `[End of file]`
/// when there is none; followed by a note when more are left. Neither number is negative.
[[nodiscard]] std::string slice_lines(std::string_view text, std::int64_t offset, std::int64_t limit);

} // namespace sandboxd::text
