#pragma once

// Private to the room.

#include "net/stream.hpp"

#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>

#include <cstddef>
#include <memory>
#include <utility>

namespace sandboxd::tls {

namespace asio = boost::asio;

/// What asio::ssl::stream wants of the stream below it.
class layer {
public:
    explicit layer(net::stream_ptr below) : below_(std::move(below)) {}

    using executor_type = asio::any_io_executor;
    using lowest_layer_type = layer;

    executor_type get_executor() { return below_->get_executor(); }
    lowest_layer_type& lowest_layer() { return *this; }

    template <class Buffers, class Token>
    auto async_read_some(const Buffers& buffers, Token&& token) {
        return below_->async_read_some(buffers, std::forward<Token>(token));
    }
    template <class Buffers, class Token>
    auto async_write_some(const Buffers& buffers, Token&& token) {
        return below_->async_write_some(buffers, std::forward<Token>(token));
    }

    [[nodiscard]] net::stream& below() noexcept { return *below_; }
    [[nodiscard]] const net::stream& below() const noexcept { return *below_; }
    [[nodiscard]] net::stream_ptr release() noexcept { return std::move(below_); }

private:
    net::stream_ptr below_;
};

using ssl_stream = asio::ssl::stream<layer>;

/// A stream whose handshake is done.
[[nodiscard]] net::stream_ptr wrap(std::shared_ptr<ssl_stream> stream);

} // namespace sandboxd::tls
