#pragma once

#include "hostfs/blocking/walk.hpp"

#include <string>

namespace sandboxd::hostfs::blocking {

enum class removal {
    strict,   ///< stops at the first thing that can't be removed; what was removed until then stays removed
    thorough, ///< leaves what can't be removed and goes on, also through directories that their owner has
              ///< shut
};

/// Removes `name` from `directory`: a link itself, a directory with everything in it, however deep; links in
/// it are removed, not followed (contract N5.7). No error when all of it is gone, else the first one met.
/// ELOOP when a directory turns into something else midway. Reads directories a block at a time, and uses a
/// fixed amount of stack and of descriptors.
[[nodiscard]] error_code remove_entry(const node& directory, const std::string& name, time_limit until,
                                      removal how = removal::strict);

} // namespace sandboxd::hostfs::blocking
