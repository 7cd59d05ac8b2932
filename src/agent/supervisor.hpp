#pragma once

#include "protocol/frame.hpp"

#include <sys/types.h>

#include <cstdint>

namespace sandboxd::agent {

// A supervisor is a process between the agent and one command: a child subreaper, so that all that the
// command leaves behind stays below it, whatever it calls (setsid, double forks). The agent sends it orders
// and gets reports, each one packet of a socket pair. It runs one command at a time, stays with what that
// leaves behind, and can be used again as soon as it has no descendants.

/// A `start` payload up to this size travels in the order itself, a longer one in a memory file. Clients
/// write files by commands of 64 KiB, and the kernel takes no more than 80 KiB in one packet without a large
/// block.
inline constexpr std::size_t inline_payload = 72 * 1024;

enum class order_kind : std::uint32_t {
    run = 1,    ///< descriptors come along, in the order of the flags; the payload follows
    stop = 2,   ///< value: milliseconds between TERM and KILL
    signal = 3, ///< value: the signal, to the command's process group
};

enum order_flags : std::uint32_t {
    payload_file = 1, ///< the first descriptor holds the payload and one more byte
    with_in = 2,
    with_out = 4,
    with_err = 8,  ///< else stderr goes where stdout goes
    terminal = 16, ///< `in` is a terminal and all three of them
};
inline constexpr int most_descriptors = 4;

struct order {
    order_kind kind{};
    std::uint32_t flags = 0;
    std::uint32_t value = 0;
    std::uint32_t size = 0; ///< of the payload
};

enum class report_kind : std::uint32_t {
    started = 1,
    failed = 2, ///< it never ran; the supervisor is idle
    exited = 3, ///< the command's own process has ended
    idle = 4,   ///< and all its descendants
};

struct report {
    report_kind kind{};
    pid_t pid = 0;
    std::int32_t status = 0;   ///< exited: as waitpid gives it
    std::uint32_t idle = 0;    ///< exited: no descendants are left either
    std::int64_t ended_at = 0; ///< exited: monotonic nanoseconds
    protocol::failure_kind failure{};
    std::uint32_t exit_code = 0;
    std::int32_t os_errno = 0;
    std::uint32_t text_size = 0; ///< failed: that many bytes follow
};
inline constexpr std::size_t longest_text = 4096;

struct supervisor_setup {
    int socket = -1;
    int null = -1;               ///< open on /dev/null
    char* const* base = nullptr; ///< environment of commands
    bool own_home = true;        ///< see launch_setup
    bool reset_oom_score = false;
    std::uint64_t open_files = 0; ///< soft limit that commands get, 0: as it is
    bool subreaper = true;        ///< found out by supervise(): the kernel has them (stray_signs)
};

/// The life of a supervisor, in the process just forked. Ends with the agent's end of the socket.
[[noreturn]] void supervise(const supervisor_setup& setup);

} // namespace sandboxd::agent
