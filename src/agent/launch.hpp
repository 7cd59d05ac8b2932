#pragma once

#include "agent/command.hpp"

#include <sys/types.h>

#include <memory>
#include <string>

namespace sandboxd::agent {

/// What a command starts with besides its own fields.
struct launch_setup {
    int in = -1; ///< these three: -1 leaves what the parent has there
    int out = -1;
    int err = -1;
    bool terminal = false; ///< `in` is a terminal that becomes the controlling one
    bool own_home = true;  ///< HOME in the base environment was guessed for the agent's own user
    bool wait = false;     ///< until the program runs: where the kernel does not tell that it does
    char* const* base = nullptr;
    char* mark = nullptr; ///< one more variable, `NAME=value`; the command gets a session of its own then
};

struct launch_result {
    pid_t pid = -1; ///< of the child, or -1: then the rest says why there is none
    protocol::failure_kind failure = protocol::failure_kind::none;
    std::uint32_t exit_code = 0; ///< what a shell would answer: 127, 126
    int os_errno = 0;
    std::string text;
};

/// The start of a command: its child shares this memory until the program runs, and nobody waits for that.
/// Only for a process with one thread, which starts one command after the other.
class launch {
public:
    launch();
    ~launch();
    launch(const launch&) = delete;
    launch& operator=(const launch&) = delete;

    /// Starts the command of a `start` payload in a process group of its own, with a terminal in a session.
    /// The payload is changed; one byte after it must be writable. It has to stay until settled().
    [[nodiscard]] launch_result begin(std::span<char> payload, const launch_setup& setup);

    /// The program runs, or the child has ended: the payload is not needed any more.
    [[nodiscard]] bool settled() const;

    /// After the child's end: why the program never ran. Without a failure it did.
    [[nodiscard]] launch_result failure() const;

    /// Gives back what a start needs. Only when settled.
    void clear();

    struct plan;

private:
    std::unique_ptr<plan> plan_;
};

} // namespace sandboxd::agent
