#pragma once

#include "http/budget.hpp"
#include "http/exchange.hpp"
#include "net/listener.hpp"
#include "tls/context.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace sandboxd::http {

/// Every bound of the server. The defaults are the service's; tests make them small.
struct limits {
    std::size_t head_bytes = 16 * 1024;               ///< 431 beyond
    std::chrono::milliseconds head_time{10'000};      ///< from its first byte to its last, whatever dribbles
    std::chrono::milliseconds idle_time{75'000};      ///< between requests
    std::chrono::milliseconds stall_time{30'000};     ///< a body or an answer that makes no progress
    std::uint64_t min_rate = 4 * 1024;                ///< bytes a second, after the first stall_time
    std::uint64_t drain_bytes = 64U * 1024 * 1024;    ///< of a refused body, else the connection is closed
    std::chrono::milliseconds drain_time{10'000};     ///< the same
    std::chrono::milliseconds linger_time{2'000};     ///< for the client to read the last answer
    std::chrono::milliseconds memory_wait{10'000};    ///< for room in the budget, then 503
    std::chrono::milliseconds handshake_time{10'000}; ///< TLS
    std::size_t max_connections = 10'000;             ///< more wait in the kernel's queue
};

/// Serves HTTP/1.1 on any number of listeners. Connections run on strands of their own, so the listeners'
/// io_context may be run by several threads. Thread-safe where not said otherwise.
class server {
public:
    virtual ~server() = default;

    /// Begins to accept. With a context, the listener speaks TLS.
    virtual void listen(net::listener_ptr listener, std::shared_ptr<tls::server_context> context = {}) = 0;

    /// Serves one connection that was made elsewhere (tests, in-memory streams).
    virtual void serve(net::stream_ptr stream, std::string peer) = 0;

    /// Closes the listeners and idle connections, lets the busy ones answer with `Connection: close` for at
    /// most `grace`, cancels what is left and returns when all have ended. Once; must have returned before
    /// the server is destroyed. Not cancellable.
    [[nodiscard]] virtual task<void> stop(std::chrono::milliseconds grace) = 0;

    [[nodiscard]] virtual std::size_t connections() const = 0;
};

/// The budget outlives the server.
[[nodiscard]] std::unique_ptr<server> create_server(handler on_request, memory_budget& budget,
                                                    const limits& bounds);

} // namespace sandboxd::http
