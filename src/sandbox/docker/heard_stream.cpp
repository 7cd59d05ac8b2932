#include "sandbox/docker/heard_stream.hpp"

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>

#include <utility>

namespace sandboxd::sandboxes::docker_backend {

namespace asio = boost::asio;

namespace {

class listening_stream final : public net::stream {
public:
    listening_stream(net::stream_ptr inner, std::shared_ptr<std::atomic<bool>> heard)
        : inner_(std::move(inner)), heard_(std::move(heard)) {}

    asio::any_io_executor get_executor() override { return inner_->get_executor(); }
    void read_some(asio::mutable_buffer buffer, net::io_handler handler) override {
        inner_->read_some(buffer, note_ ? noting(std::move(handler)) : std::move(handler));
    }
    void write_some(std::span<const asio::const_buffer> buffers, net::io_handler handler) override {
        inner_->write_some(buffers, std::move(handler));
    }
    void shutdown_send() override { inner_->shutdown_send(); }
    void close() noexcept override { inner_->close(); }
    int native_handle() const noexcept override { return inner_->native_handle(); }

private:
    /// The first read only: what it got settles the question.
    net::io_handler noting(net::io_handler handler) {
        note_ = false;
        const auto executor = asio::get_associated_executor(handler, inner_->get_executor());
        const auto slot = asio::get_associated_cancellation_slot(handler);
        auto tell = [heard = heard_, handler = std::move(handler)](boost::system::error_code failed,
                                                                   std::size_t count) mutable {
            *heard = count != 0;
            std::move(handler)(failed, count);
        };
        return asio::bind_executor(executor, asio::bind_cancellation_slot(slot, std::move(tell)));
    }

    net::stream_ptr inner_;
    std::shared_ptr<std::atomic<bool>> heard_;
    bool note_ = true;
};

} // namespace

net::stream_ptr heard_stream(net::stream_ptr inner, std::shared_ptr<std::atomic<bool>> heard) {
    return std::make_unique<listening_stream>(std::move(inner), std::move(heard));
}

} // namespace sandboxd::sandboxes::docker_backend
