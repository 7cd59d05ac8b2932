#include "docker/filtered_stream.hpp"

#include "docker/chunk_decoder.hpp"

#include <boost/asio/append.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>

namespace sandboxd::docker {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

const error_code bad_message = make_error_code(boost::system::errc::bad_message);

/// Shared with the operation under way, which may complete after the stream is gone.
class reader : public std::enable_shared_from_this<reader> {
public:
    reader(net::stream_ptr inner, stream_filter filter)
        : inner_(std::move(inner)), filter_(std::move(filter)) {
        ready_.swap(filter_.leftover);
        if (filter_.chunked || filter_.demultiplex) {
            std::string raw;
            raw.swap(ready_);
            take(raw);
        }
    }

    net::stream& inner() { return *inner_; }

    void read(asio::mutable_buffer into, net::io_handler handler) {
        if (give_at_once(into)) {
            const std::size_t size = give(into);
            finish(std::move(handler), {}, size);
        } else if (ended_) {
            finish(std::move(handler), *ended_, 0);
        } else {
            read_inner(into, std::move(handler));
        }
    }

private:
    bool give_at_once(asio::mutable_buffer into) const { return into.size() == 0 || at_ < ready_.size(); }

    std::size_t give(asio::mutable_buffer into) {
        const std::size_t size = std::min(into.size(), ready_.size() - at_);
        std::copy_n(ready_.data() + at_, size, static_cast<char*>(into.data()));
        at_ += size;
        if (at_ == ready_.size()) {
            ready_.clear();
            at_ = 0;
        }
        return size;
    }

    void finish(net::io_handler handler, error_code failed, std::size_t size) {
        asio::post(inner_->get_executor(), asio::append(std::move(handler), failed, size));
    }

    void read_inner(asio::mutable_buffer into, net::io_handler handler) {
        if (!filter_.chunked && !filter_.demultiplex) {
            inner_->read_some(into, std::move(handler));
            return;
        }
        auto slot = asio::get_associated_cancellation_slot(handler);
        auto taken = [self = shared_from_this(), into,
                      handler = std::move(handler)](error_code failed, std::size_t size) mutable {
            self->arrived(into, std::move(handler), failed, size);
        };
        inner_->read_some(asio::buffer(buffer_),
                          net::io_handler(asio::bind_cancellation_slot(slot, std::move(taken))));
    }

    void arrived(asio::mutable_buffer into, net::io_handler handler, error_code failed, std::size_t size) {
        take(std::string_view(buffer_.data(), size));
        if (failed && !ended_ && failed != asio::error::operation_aborted) {
            ended_ = failed == asio::error::eof ? end_of_file() : failed;
        }
        if (at_ < ready_.size()) {
            const std::size_t given = give(into);
            std::move(handler)(error_code(), given);
        } else if (ended_) {
            std::move(handler)(*ended_, 0);
        } else if (failed) {
            std::move(handler)(failed, 0);
        } else {
            read_inner(into, std::move(handler)); // only framing came
        }
    }

    void take(std::string_view bytes) {
        std::string decoded;
        if (filter_.chunked) {
            if (!chunks_.feed(bytes, decoded)) {
                ended_ = bad_message;
            }
            bytes = decoded;
        }
        if (!filter_.demultiplex) {
            ready_.append(bytes);
        } else {
            const auto each = [this](channel from, std::string_view part) {
                if (from == channel::out) {
                    ready_.append(part);
                } else if (filter_.side) {
                    filter_.side(from, part);
                }
            };
            if (!demux_.feed(bytes, each)) {
                ended_ = bad_message;
            }
        }
        if (filter_.chunked && chunks_.done() && !ended_) {
            ended_ = end_of_file();
        }
    }

    error_code end_of_file() {
        const bool whole =
            (!filter_.chunked || chunks_.finish()) && (!filter_.demultiplex || demux_.finish());
        return whole ? error_code(asio::error::eof) : bad_message;
    }

    net::stream_ptr inner_;
    stream_filter filter_;
    chunk_decoder chunks_;
    frame_demux demux_;
    std::array<char, 32768> buffer_{};
    std::string ready_;
    std::size_t at_ = 0; ///< of ready_, already given
    std::optional<error_code> ended_;
};

class filtered_stream final : public net::stream {
public:
    explicit filtered_stream(std::shared_ptr<reader> state) : state_(std::move(state)) {}
    ~filtered_stream() override { close(); }

    asio::any_io_executor get_executor() override { return state_->inner().get_executor(); }
    void read_some(asio::mutable_buffer buffer, net::io_handler handler) override {
        state_->read(buffer, std::move(handler));
    }
    void write_some(std::span<const asio::const_buffer> buffers, net::io_handler handler) override {
        state_->inner().write_some(buffers, std::move(handler));
    }
    void shutdown_send() override { state_->inner().shutdown_send(); }
    void close() noexcept override { state_->inner().close(); }
    int native_handle() const noexcept override { return state_->inner().native_handle(); }

private:
    std::shared_ptr<reader> state_;
};

} // namespace

net::stream_ptr filtered(net::stream_ptr inner, stream_filter filter) {
    return std::make_unique<filtered_stream>(std::make_shared<reader>(std::move(inner), std::move(filter)));
}

} // namespace sandboxd::docker
