#pragma once

#include "net/stream.hpp"
#include "sandboxd/sandbox.hpp"

#include <chrono>
#include <memory>
#include <string>

namespace sandboxd::tls {

/// PEM texts; empty: the system's authorities, no client certificate.
struct client_settings {
    std::string ca;
    std::string certificate;
    std::string key;
    bool verify = true; ///< the peer's chain and its name
};

/// TLS 1.2 and 1.3 to a named peer. Shared by all connections; thread-safe.
class client_context {
public:
    virtual ~client_context() = default;

    /// The handshake over `plain`, which is closed when it fails. `host` is sent as SNI and, with verify,
    /// must be in the peer's certificate (a name, or an address as a numeric host). errc::timeout after
    /// `limit`, errc::denied for a certificate that does not hold, else errc::protocol.
    [[nodiscard]] virtual task<result<net::stream_ptr>> connect(net::stream_ptr plain, std::string host,
                                                                std::chrono::milliseconds limit) = 0;
};

/// errc::invalid tells which text is unusable.
[[nodiscard]] result<std::shared_ptr<client_context>> create_client(const client_settings& settings);

} // namespace sandboxd::tls
