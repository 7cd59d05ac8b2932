#pragma once

// The fast path to an agent ("Decided" 5): a listening socket of ours in a directory of the slot's own, which
// the sandbox sees read-only and its agent dials.

#include "core/fd.hpp"
#include "net/stream.hpp"
#include "sandboxd/sandbox.hpp"

#include <sys/types.h>

#include <chrono>
#include <string>

namespace sandboxd::sandboxes::docker_backend {

/// The socket's name in its directory.
inline constexpr const char* dial_socket = "agent.sock";

class dial_in {
public:
    /// Makes the directory and listens in it, in place of whoever did before.
    [[nodiscard]] static result<dial_in> open(const std::string& directory);

    /// The next connection of the process `peer`; others (a command that tries) are turned away. Nobody is
    /// let in while nobody awaits this. errc::timeout after `limit`. On `executor`, a strand.
    [[nodiscard]] task<result<net::stream_ptr>> accept(net::asio::any_io_executor executor, pid_t peer,
                                                       std::chrono::milliseconds limit) const;

private:
    explicit dial_in(core::unique_fd listener) : listener_(std::move(listener)) {}

    core::unique_fd listener_;
};

/// With its socket. Missing is fine.
void remove_dial_directory(const std::string& directory) noexcept;

} // namespace sandboxd::sandboxes::docker_backend
