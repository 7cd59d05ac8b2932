#pragma once

#include "core/fd.hpp"
#include "net/stream.hpp"
#include "sandboxd/sandbox.hpp"

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>

namespace sandboxd::net {

// The streams run on `executor`: a strand where several threads run the context. They throw nothing.

/// Connects to a Unix socket. Never waits long: a full backlog is an error (EAGAIN), so retry with a
/// back-off.
[[nodiscard]] result<stream_ptr> connect_unix(const asio::any_io_executor& executor, const std::string& path);

/// Takes over a connected stream socket of any family. Makes it non-blocking and close-on-exec.
[[nodiscard]] result<stream_ptr> adopt(const asio::any_io_executor& executor, core::unique_fd socket);

/// The next connection to a listening Unix socket, which goes on listening; errc::timeout when none comes
/// `within`, errc::io for what else keeps one from coming. For few peers that are expected, such as an agent
/// that dials: clients of a server are listener.hpp's. Called on `executor`, a strand.
[[nodiscard]] task<result<stream_ptr>> accept_within(asio::any_io_executor executor, int listening,
                                                     std::chrono::milliseconds within);

/// Connects to host:port over TCP (a numeric address, or a name looked up without blocking); the first
/// address that answers. May be cancelled at any time, also while a name server does not answer. Called on
/// `executor`, a strand.
[[nodiscard]] task<result<stream_ptr>> connect_tcp(asio::any_io_executor executor, std::string host,
                                                   std::string port);

/// Two ends of one in-memory connection, for tests: what is written to one is read from the other, at most
/// `capacity` bytes under way and at most `piece` bytes a read. No descriptor (native_handle() is -1). Both
/// must be used from the same thread or strand.
[[nodiscard]] std::pair<stream_ptr, stream_ptr>
memory_pair(const asio::any_io_executor& executor, std::size_t capacity = 65536, std::size_t piece = 65536);

/// The peer has reset the connection or closed both directions; a FIN alone is not that. False where there is
/// no descriptor to ask. One system call.
[[nodiscard]] bool peer_gone(const stream& one) noexcept;

/// The peer has shut its sending side, or is gone. Which of the two can't be told before something was sent
/// to it.
[[nodiscard]] bool peer_sends_no_more(const stream& one) noexcept;

} // namespace sandboxd::net
