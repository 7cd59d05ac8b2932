#pragma once

#include "sandbox/link_stream.hpp"

#include <optional>
#include <string_view>

namespace sandboxd::sandboxes {

/// An `end` frame's payload with the totals it claims.
struct read_end {
    end_record record;
    std::uint64_t out_total = 0;
    std::uint64_t err_total = 0;
};

/// Nothing when the payload is malformed, a value is out of its range, or the values contradict each other:
/// a command that exited has exactly one of code and signal, one that never started has a failure.
[[nodiscard]] std::optional<read_end> parse_end(std::string_view payload);

} // namespace sandboxd::sandboxes
