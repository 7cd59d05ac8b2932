#pragma once

#include "core/fd.hpp"
#include "text/blocking/confined.hpp"

namespace sandboxd::text::blocking {

/// Descriptors of the child, none of them below 10.
struct child_descriptors {
    int input = -1;
    int output = -1;
    int complaints = -1;
    int failure =
        -1; ///< a pipe, closed by a start that succeeds; else the number of the error is written to it
    int landlock = -1; ///< a rule set, or -1
};

/// A Landlock rule set that lets the system's programs and libraries be read and nothing else; empty where
/// the kernel has no Landlock. Call it before the fork.
[[nodiscard]] core::unique_fd make_landlock_rules();

/// In the child of a fork: puts up the walls and becomes the program. Makes no call that is not safe there.
[[noreturn]] void become_confined(const child_descriptors& own, char* const* argv,
                                  const allowance& most) noexcept;

} // namespace sandboxd::text::blocking
