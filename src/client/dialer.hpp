#pragma once

#include "client/url.hpp"
#include "net/stream.hpp"

#include <memory>

namespace sandboxd::client {

/// Makes connections to one service. Used on one strand.
class dialer {
public:
    virtual ~dialer() = default;

    /// A connection that runs on `executor`, TLS and its checks included. The caller bounds the time.
    [[nodiscard]] virtual task<result<net::stream_ptr>> dial(boost::asio::any_io_executor executor) = 0;
};

/// fault::invalid when certificates can't be read or used; nothing is connected.
[[nodiscard]] outcome<std::unique_ptr<dialer>> create_dialer(const service_url& where,
                                                             const connection_options& options);

} // namespace sandboxd::client
