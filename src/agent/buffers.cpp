#include "agent/buffers.hpp"

#include <sys/mman.h>
#include <unistd.h>

extern "C" {
extern const char __executable_start; // NOLINT: the linker's names
extern const char etext;              // NOLINT
}

namespace sandboxd::agent {

void give_back(std::span<char> unused) {
    // Pages that it has for itself: where they are larger than here, what lies beside it shares the outer
    // ones.
    const auto page = static_cast<std::uintptr_t>(getpagesize());
    const auto begin = reinterpret_cast<std::uintptr_t>(unused.data());
    const auto first = (begin + page - 1) & ~(page - 1);
    const auto last = (begin + unused.size()) & ~(page - 1);
    if (first < last) {
        madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
    }
}

void release_unused() {
    give_back({reinterpret_cast<char*>(&buffers), sizeof buffers});
#ifdef SANDBOXD_AGENT_PROGRAM
    const auto page = static_cast<std::uintptr_t>(getpagesize());
    const auto first = reinterpret_cast<std::uintptr_t>(&__executable_start) & ~(page - 1);
    const auto last = reinterpret_cast<std::uintptr_t>(&etext) & ~(page - 1);
    madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
#endif
}

} // namespace sandboxd::agent
