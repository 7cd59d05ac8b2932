#pragma once

#include "agent/command.hpp"

#include <sys/types.h>

#include <string>

namespace sandboxd::agent {

/// What a command starts with besides its own fields.
struct launch_setup {
    int in = -1;
    int out = -1;
    int err = -1;
    bool terminal = false; ///< `in` is a terminal that becomes the controlling one
    bool own_home = true;  ///< HOME in the base environment was guessed for the agent's own user
    char* const* base = nullptr;
    char* mark = nullptr; ///< one more variable, `NAME=value`
};

struct launch_result {
    pid_t pid = -1; ///< of the running command, or -1: then the rest says why
    protocol::failure_kind failure = protocol::failure_kind::none;
    std::uint32_t exit_code = 0; ///< what a shell would answer: 127, 126
    int os_errno = 0;
    std::string text;
};

/// Starts the command of a `start` payload in a session of its own and returns when the program runs, or
/// can't. The payload is changed; one byte after it must be writable. Only for a process with one thread.
[[nodiscard]] launch_result launch(std::span<char> payload, const launch_setup& setup);

} // namespace sandboxd::agent
