#pragma once

#include "sandboxd/config.hpp"

#include <algorithm>
#include <cstdint>

namespace sandboxd::session {

/// Bytes of the largest file that is read or written whole: as the policy says, but no more than answers may
/// hold together. To read a file that no answer has room for would only take the memory.
[[nodiscard]] inline std::int64_t read_limit(const settings& now) {
    return std::min(now.max_read_bytes, now.max_inflight_bytes);
}

} // namespace sandboxd::session
