#pragma once

#include "agent/file_helper.hpp"

namespace sandboxd::agent {

/// Where bytes pass through: nothing stays in them between two events, so that a quiet agent gives their
/// memory back (release_unused).
struct pass_through {
    alignas(4096) char frames[64 * 1024]; ///< from the host; in use while its frames are handled
    /// From pipes and helpers; in use only until they are stored.
    alignas(4096) char output[sizeof(file_report) + largest_report];
};
inline pass_through buffers;

/// Gives back what can be had again: the buffers, and the pages of the program itself that lie in the page
/// cache anyway.
void release_unused();

} // namespace sandboxd::agent
