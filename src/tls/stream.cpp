#include "tls/stream.hpp"

#include <boost/asio/append.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>

#include <algorithm>
#include <optional>
#include <vector>

namespace sandboxd::tls {

namespace {

/// The engine encrypts one buffer at a time: small ones (a head, a short body) are joined so that they make
/// one record and one packet.
constexpr std::size_t joined_size = 8 * 1024;

class tls_stream final : public net::stream {
public:
    explicit tls_stream(std::shared_ptr<ssl_stream> stream) : stream_(std::move(stream)) {}
    ~tls_stream() override { close(); }

    asio::any_io_executor get_executor() override { return stream_->get_executor(); }

    void read_some(asio::mutable_buffer buffer, net::io_handler handler) override {
        if (!farewell_) {
            stream_->async_read_some(buffer, std::move(handler));
            return;
        }
        // After our farewell whatever comes is thrown away by the caller, so it need not be decrypted; the
        // engine may still be waiting for the peer's, and reads until then.
        if (farewell_->over) {
            stream_->next_layer().below().read_some(buffer, std::move(handler));
        } else {
            farewell_->buffer = buffer;
            farewell_->reader.emplace(std::move(handler));
        }
    }

    void write_some(std::span<const asio::const_buffer> buffers, net::io_handler handler) override {
        if (buffers.size() < 2 || buffers.front().size() >= joined_size) {
            stream_->async_write_some(buffers.empty() ? asio::const_buffer() : buffers.front(),
                                      std::move(handler));
            return;
        }
        joined_.clear();
        for (const auto& buffer : buffers) {
            const auto part = std::min(buffer.size(), joined_size - joined_.size());
            const auto* bytes = static_cast<const char*>(buffer.data());
            joined_.insert(joined_.end(), bytes, bytes + part);
        }
        stream_->async_write_some(asio::buffer(joined_), std::move(handler));
    }

    void shutdown_send() override {
        if (farewell_ || closed_) {
            return;
        }
        farewell_ = std::make_shared<farewell>();
        // Keeps the stream: the peer may take its time, and close() ends the operation.
        auto done = [stream = stream_, state = farewell_](boost::system::error_code) {
            state->over = true;
            stream->next_layer().below().shutdown_send();
            if (state->reader) {
                net::io_handler reader = std::move(*state->reader);
                state->reader.reset();
                stream->next_layer().below().read_some(state->buffer, std::move(reader));
            }
        };
        stream_->async_shutdown(std::move(done));
    }

    void close() noexcept override {
        closed_ = true;
        stream_->next_layer().below().close();
    }

    int native_handle() const noexcept override {
        return std::as_const(*stream_).next_layer().below().native_handle();
    }

private:
    struct farewell {
        bool over = false;
        asio::mutable_buffer buffer;
        std::optional<net::io_handler> reader;
    };

    std::shared_ptr<ssl_stream> stream_;
    std::shared_ptr<farewell> farewell_;
    std::vector<char> joined_;
    bool closed_ = false;
};

} // namespace

net::stream_ptr wrap(std::shared_ptr<ssl_stream> stream) {
    return std::make_unique<tls_stream>(std::move(stream));
}

} // namespace sandboxd::tls
