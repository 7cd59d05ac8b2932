#pragma once

// Private to the room.

#include "net/stream.hpp"
#include "sandboxd/sandbox.hpp"

#include <openssl/ssl.h>

#include <memory>

namespace sandboxd::tls {

struct free_ssl {
    void operator()(SSL* one) const noexcept { SSL_free(one); }
};
using ssl_ptr = std::unique_ptr<SSL, free_ssl>;

/// A TLS session as a client over `below`, for a peer that half-closes and is half-closed: after
/// shutdown_send() (a close_notify) reading goes on, which asio::ssl::stream can't do. The engine's streams
/// need it: end-of-file on a command's input, and then its output.
class client_stream final : public net::stream {
public:
    client_stream(net::stream_ptr below, ssl_ptr session);
    ~client_stream() override;

    /// Once, before anything else. No error when the session stands; SSL_get_verify_result() tells about the
    /// peer.
    [[nodiscard]] task<boost::system::error_code> handshake();

    boost::asio::any_io_executor get_executor() override;
    void read_some(boost::asio::mutable_buffer buffer, net::io_handler handler) override;
    void write_some(std::span<const boost::asio::const_buffer> buffers, net::io_handler handler) override;
    void shutdown_send() override;
    void close() noexcept override;
    int native_handle() const noexcept override;

private:
    struct state;
    std::shared_ptr<state> state_;
};

} // namespace sandboxd::tls
