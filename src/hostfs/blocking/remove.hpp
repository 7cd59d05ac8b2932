#pragma once

#include "hostfs/blocking/walk.hpp"

#include <string>

namespace sandboxd::hostfs::blocking {

/// Removes `name` from `directory`: a link itself, a directory with everything in it, however deep; links in
/// it are removed, not followed (contract N5.7). Stops at the first thing that can't be removed; what was
/// removed until then stays removed. ELOOP when a directory turns into something else midway. Uses a fixed
/// amount of stack and of descriptors.
[[nodiscard]] error_code remove_entry(const node& directory, const std::string& name, time_limit until);

} // namespace sandboxd::hostfs::blocking
