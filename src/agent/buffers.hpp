#pragma once

#include "agent/file_helper.hpp"

#include <span>

namespace sandboxd::agent {

/// Where bytes pass through: nothing stays in them between two events, so that a quiet agent gives their
/// memory back (release_unused).
struct pass_through {
    /// From the host; in use while its frames are handled. A command of one longest argument fits.
    alignas(4096) char frames[132 * 1024];
    /// From pipes and helpers; in use only until they are stored.
    alignas(4096) char output[sizeof(file_report) + largest_report];
};
inline pass_through buffers;

/// Gives the memory of a static array back whose content is not needed any more; it reads as zeros then.
void give_back(std::span<char> unused);

/// Gives back what can be had again: the buffers, and the pages of the program itself that lie in the page
/// cache anyway.
void release_unused();

} // namespace sandboxd::agent
