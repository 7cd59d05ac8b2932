#pragma once

// tls: contexts and the TLS stream behind net::stream. The only room that includes OpenSSL's and Asio's TLS
// headers.

#include "net/stream.hpp"
#include "sandboxd/sandbox.hpp"

#include <chrono>
#include <memory>
#include <string>

namespace sandboxd::tls {

/// Certificate and key of a server: TLS 1.2 and 1.3, ALPN http/1.1. Shared by all connections; thread-safe.
class server_context {
public:
    virtual ~server_context() = default;

    /// The handshake over `plain`, which is closed when it fails. errc::timeout after `limit`; errc::protocol
    /// for everything the peer did wrong. A client that speaks plain HTTP gets a readable 400 first.
    [[nodiscard]] virtual task<result<net::stream_ptr>> accept(net::stream_ptr plain,
                                                               std::chrono::milliseconds limit) = 0;
};

/// Reads a PEM certificate chain and its key. Errors (errc::invalid) name the file.
[[nodiscard]] result<std::shared_ptr<server_context>> load_server(const std::string& certificate,
                                                                  const std::string& key);

} // namespace sandboxd::tls
