#pragma once

#include "net/stream.hpp"

#include <boost/asio/local/stream_protocol.hpp>

namespace sandboxd::sandboxes {

/// A stream over a connected Unix socket; it runs on the socket's executor.
[[nodiscard]] net::stream_ptr create_local_stream(boost::asio::local::stream_protocol::socket socket);

} // namespace sandboxd::sandboxes
