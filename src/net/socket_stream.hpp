#pragma once

// Private to the room: one class for every socket the kernel knows.

#include "core/fd.hpp"
#include "net/stream.hpp"
#include "sandboxd/sandbox.hpp"

#include <string>

struct sockaddr;

namespace sandboxd::net {

/// Takes a connected, non-blocking, close-on-exec stream socket of the family given (AF_INET, AF_INET6,
/// AF_UNIX).
[[nodiscard]] result<stream_ptr> wrap_socket(const asio::any_io_executor& executor, core::unique_fd socket,
                                             int family);

/// TCP_NODELAY and keep-alive probes; nothing for other families. Errors are ignored: the peer may have left.
void tune(int socket, int family) noexcept;

/// "192.0.2.1:80", "[::1]:80", "unix".
[[nodiscard]] std::string name_of(const sockaddr* address);

} // namespace sandboxd::net
