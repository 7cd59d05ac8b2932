#pragma once

#include <array>
#include <chrono>

namespace sandboxd::test {

/// Deadlines for a command that prints something and then waits: the next one where it did not come so far,
/// on a machine that is busy with something else.
inline constexpr std::array<std::chrono::milliseconds, 3> come_so_far{
    std::chrono::milliseconds(300), std::chrono::seconds(4), std::chrono::seconds(30)};

} // namespace sandboxd::test
