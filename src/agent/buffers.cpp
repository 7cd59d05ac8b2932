#include "agent/buffers.hpp"

#include <sys/mman.h>

extern "C" {
extern const char __executable_start; // NOLINT: the linker's names
extern const char etext;              // NOLINT
}

namespace sandboxd::agent {

void release_unused() {
    static_assert(sizeof buffers % 4096 == 0);
    madvise(&buffers, sizeof buffers, MADV_DONTNEED);
#ifdef SANDBOXD_AGENT_PROGRAM
    constexpr std::uintptr_t page = 4096;
    const auto first = reinterpret_cast<std::uintptr_t>(&__executable_start) & ~(page - 1);
    const auto last = reinterpret_cast<std::uintptr_t>(&etext) & ~(page - 1);
    madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
#endif
}

} // namespace sandboxd::agent
