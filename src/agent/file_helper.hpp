#pragma once

// A file helper is a process between the agent and the file system: it may wait for a disk or a mount that
// never answers, the agent never does. It works as the command's user, on one operation at a time, and can be
// used again. The agent and the helper exchange packets over a socket pair; what either has not taken yet
// holds the other back.

#include "protocol/files.hpp"

#include <sys/types.h>

#include <cstdint>
#include <optional>

namespace sandboxd::agent {

/// Whose name an operation carries: absent means the agent's own.
struct file_user {
    std::optional<std::uint32_t> user;
    std::optional<std::uint32_t> group;

    friend bool operator==(const file_user&, const file_user&) = default;
};

/// The most bytes that follow the head of a packet, in either direction.
inline constexpr std::size_t largest_order = 64 * 1024;
inline constexpr std::size_t largest_report = 32 * 1024;

enum class file_order_kind : std::uint32_t {
    run = 1,   ///< a `start` payload follows
    input = 2, ///< bytes follow
    input_end = 3,
    abort = 4, ///< the rest of the input will not come
};

struct file_order {
    file_order_kind kind{};
    std::uint32_t size = 0;
};

/// How an operation ended: what its `end` will say (protocol/files.hpp).
struct file_answer {
    protocol::failure_kind failure = protocol::failure_kind::none;
    std::int32_t os_errno = 0;
    std::uint32_t marks = 0;
    std::uint64_t length = 0;
};

enum class file_report_kind : std::uint32_t {
    output = 1, ///< bytes follow
    done = 2,   ///< a sentence of text_size bytes and the last of the output follow
};

struct file_report {
    file_report_kind kind{};
    std::uint32_t text_size = 0;
    file_answer answer;
};

struct file_helper_setup {
    int socket = -1;
    int null = -1;  ///< open on /dev/null
    int locks = -1; ///< a file in memory that all helpers share, see path_lock
    file_user whose;
    bool reset_oom_score = false;
};

/// The life of a helper, in the process just forked. Ends with the agent's end of the socket.
[[noreturn]] void serve_files(const file_helper_setup& setup);

} // namespace sandboxd::agent
