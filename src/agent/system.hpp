#pragma once

// Small system calls that need a fall-back or a check.

#include "agent/deadlines.hpp"
#include "agent/descriptor.hpp"

#include <span>

namespace sandboxd::agent {

/// The monotonic clock.
[[nodiscard]] instant now();
/// The wall clock, only to be shown.
[[nodiscard]] std::uint64_t unix_microseconds();

/// Closes every descriptor from `first` on, also where close_range is missing or forbidden.
void close_from(int first);

/// Standard input is at its end from now on, output goes nowhere; who held the other ends sees them end.
void leave_standard_streams();

/// In a process just forked: keeps `files` as the descriptors from 3 on, close-on-exec, `null` as 0 to 2 and
/// nothing else. What the agent holds is not for a process that commands can signal. `files` gets the new
/// numbers.
void keep_only(std::span<int> files, int null);

void set_nonblocking(int fd);

/// 16 bytes that nobody can guess.
void random_bytes(char (&out)[16]);

/// A pipe, close-on-exec; both invalid when there is none to be had (errno).
struct pipe_ends {
    descriptor read;
    descriptor write;
};
[[nodiscard]] pipe_ends make_pipe();

/// A pseudo-terminal of that size: the agent's end does not block.
struct terminal_ends {
    descriptor master;
    descriptor slave;
};
[[nodiscard]] terminal_ends make_terminal(unsigned short rows, unsigned short columns);
void resize_terminal(int master, unsigned short rows, unsigned short columns);

/// Bytes waiting to be read.
[[nodiscard]] std::size_t readable_bytes(int fd);

} // namespace sandboxd::agent
