#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sandboxd::config {

/// A size as contract 4.2 lets it be written: a number with an optional fraction, then `b k m g` in either
/// case with an optional trailing `b`; powers of 1024, a bare number is bytes, a fraction of a byte is
/// dropped. Nothing for anything else, for a negative size, and for 8 EiB and more.
[[nodiscard]] std::optional<std::uint64_t> parse_size(std::string_view text);

/// The `size=` option of a tmpfs, in the kernel's own spelling, for what SANDBOXD_TMPFS_SIZE may be: a size
/// as above (at least one byte), or a percentage of memory from 1% to 100%. Nothing for anything else: the
/// text reaches mount options, so a comma must not.
[[nodiscard]] std::optional<std::string> tmpfs_size_option(std::string_view text);

} // namespace sandboxd::config
