#pragma once

#include "net/stream.hpp"
#include "sandboxd/sandbox.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace sandboxd::net {

/// A new connection; its stream runs on a strand of its own.
struct accepted {
    stream_ptr stream;
    std::string peer; ///< "192.0.2.1:4711", "[::1]:4711", "unix"
};

/// A listening socket. One accept at a time, on its executor.
class listener {
public:
    virtual ~listener() = default;

    virtual asio::any_io_executor get_executor() = 0;

    /// The next connection. Rides out what passes (a client that left, descriptors or memory used up) with a
    /// back-off and a line in the log; errc::gone after close().
    [[nodiscard]] virtual task<result<accepted>> accept() = 0;

    /// Ends a pending accept. On its executor. Idempotent.
    virtual void close() noexcept = 0;

    /// "127.0.0.1:8080", "[::]:8080", or the path of a Unix socket.
    [[nodiscard]] virtual std::string address() const = 0;
    /// 0 for a Unix socket.
    [[nodiscard]] virtual std::uint16_t port() const noexcept = 0;
};

using listener_ptr = std::unique_ptr<listener>;

/// Listens on every address that `host` (a name or an address, IPv6 without brackets) stands for; empty means
/// all interfaces, IPv6 and IPv4. Port 0 picks one. Looks up names, so it may block: for the start only.
/// Errors name host and port.
[[nodiscard]] result<std::vector<listener_ptr>> listen_tcp(const asio::any_io_executor& context,
                                                           const std::string& host, std::uint16_t port);

/// Listens on a Unix socket made at `path` (at most 107 bytes), which must not exist. Removes it when closed.
[[nodiscard]] result<listener_ptr> listen_unix(const asio::any_io_executor& context, const std::string& path);

} // namespace sandboxd::net
