#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace sandboxd::agent {

/// Ranges of bytes that follow each other: any combination of theirs is a character.
using byte_ranges = std::vector<std::pair<unsigned char, unsigned char>>;

/// Appends the sequences that are the UTF-8 encodings of the characters from `from` to `to`; surrogates have
/// none.
void append_utf8_ranges(std::uint32_t from, std::uint32_t to, std::vector<byte_ranges>& out);

} // namespace sandboxd::agent
