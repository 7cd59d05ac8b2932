#include "sandbox/local_stream.hpp"

#include <boost/asio/local/stream_protocol.hpp>

#include <vector>

namespace sandboxd::sandboxes {

namespace asio = boost::asio;

namespace {

class local_stream final : public net::stream {
public:
    explicit local_stream(asio::local::stream_protocol::socket socket) : socket_(std::move(socket)) {}

    asio::any_io_executor get_executor() override { return socket_.get_executor(); }

    void read_some(asio::mutable_buffer buffer, net::io_handler handler) override {
        socket_.async_read_some(buffer, std::move(handler));
    }

    void write_some(std::span<const asio::const_buffer> buffers, net::io_handler handler) override {
        // Copied by the operation, so it may outlive the span.
        std::vector<asio::const_buffer> list(buffers.begin(), buffers.end());
        socket_.async_write_some(list, std::move(handler));
    }

    void shutdown_send() override {
        boost::system::error_code ignored;
        socket_.shutdown(asio::socket_base::shutdown_send, ignored);
    }

    void close() noexcept override {
        boost::system::error_code ignored;
        socket_.close(ignored);
    }

    int native_handle() const noexcept override {
        return const_cast<asio::local::stream_protocol::socket&>(socket_).native_handle();
    }

private:
    asio::local::stream_protocol::socket socket_;
};

} // namespace

net::stream_ptr create_local_stream(asio::local::stream_protocol::socket socket) {
    return std::make_unique<local_stream>(std::move(socket));
}

} // namespace sandboxd::sandboxes
