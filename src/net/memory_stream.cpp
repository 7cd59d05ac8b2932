#include "net/connect.hpp"

#include <boost/asio/append.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>

#include <algorithm>
#include <memory>
#include <optional>

namespace sandboxd::net {

namespace {

using boost::system::error_code;

/// One direction: what the writer put in and the reader has not taken out.
class lane : public std::enable_shared_from_this<lane> {
public:
    lane(asio::any_io_executor executor, std::size_t capacity, std::size_t piece)
        : executor_(std::move(executor)), capacity_(capacity), piece_(piece) {}

    void read(asio::mutable_buffer into, io_handler handler) {
        into_ = into;
        hold(reader_, std::move(handler));
        move();
    }

    void write(std::span<const asio::const_buffer> buffers, io_handler handler) {
        from_.assign(buffers.begin(), buffers.end());
        hold(writer_, std::move(handler));
        move();
    }

    /// The writer is done: what is under way is still read, then the end.
    void finish() {
        finished_ = true;
        move();
    }

    /// The reader went away: writing fails from now on.
    void break_off() {
        broken_ = true;
        held_.clear();
        move();
    }

    void abort_reader() { complete(reader_, asio::error::operation_aborted, 0); }
    void abort_writer() { complete(writer_, asio::error::operation_aborted, 0); }

private:
    using slot_type = std::optional<io_handler>;

    void hold(slot_type& place, io_handler handler) {
        auto slot = asio::get_associated_cancellation_slot(handler);
        if (slot.is_connected()) {
            slot.assign([weak = weak_from_this(), &place](asio::cancellation_type) {
                if (auto self = weak.lock()) {
                    self->complete(place, asio::error::operation_aborted, 0);
                }
            });
        }
        place.emplace(std::move(handler));
    }

    void complete(slot_type& place, error_code failed, std::size_t bytes) {
        if (!place) {
            return;
        }
        io_handler handler = std::move(*place);
        place.reset();
        auto slot = asio::get_associated_cancellation_slot(handler);
        if (slot.is_connected()) {
            slot.clear();
        }
        asio::post(executor_, asio::append(std::move(handler), failed, bytes));
    }

    void move() {
        if (writer_) {
            move_in();
        }
        if (reader_) {
            move_out();
        }
    }

    void move_in() {
        if (broken_ || finished_) {
            complete(writer_, asio::error::broken_pipe, 0);
            return;
        }
        std::size_t taken = 0;
        for (const auto& buffer : from_) {
            const std::size_t part = std::min(buffer.size(), capacity_ - std::min(capacity_, held_.size()));
            held_.append(static_cast<const char*>(buffer.data()), part);
            taken += part;
        }
        if (taken > 0 || from_.empty()) {
            complete(writer_, {}, taken);
        }
    }

    void move_out() {
        const std::size_t part = std::min({into_.size(), held_.size(), piece_});
        if (part > 0) {
            std::copy_n(held_.data(), part, static_cast<char*>(into_.data()));
            held_.erase(0, part);
            complete(reader_, {}, part);
            if (writer_) {
                move_in();
            }
        } else if (into_.size() == 0) {
            complete(reader_, {}, 0);
        } else if (finished_) {
            complete(reader_, asio::error::eof, 0);
        }
    }

    asio::any_io_executor executor_;
    std::size_t capacity_;
    std::size_t piece_;
    std::string held_;
    asio::mutable_buffer into_;
    std::vector<asio::const_buffer> from_;
    slot_type reader_;
    slot_type writer_;
    bool finished_ = false;
    bool broken_ = false;
};

class memory_stream final : public stream {
public:
    memory_stream(asio::any_io_executor executor, std::shared_ptr<lane> in, std::shared_ptr<lane> out)
        : executor_(std::move(executor)), in_(std::move(in)), out_(std::move(out)) {}
    ~memory_stream() override { close(); }

    asio::any_io_executor get_executor() override { return executor_; }

    void read_some(asio::mutable_buffer buffer, io_handler handler) override {
        if (closed_) {
            asio::post(executor_, asio::append(std::move(handler), error_code(asio::error::bad_descriptor),
                                               std::size_t(0)));
            return;
        }
        in_->read(buffer, std::move(handler));
    }

    void write_some(std::span<const asio::const_buffer> buffers, io_handler handler) override {
        if (closed_) {
            asio::post(executor_, asio::append(std::move(handler), error_code(asio::error::bad_descriptor),
                                               std::size_t(0)));
            return;
        }
        out_->write(buffers, std::move(handler));
    }

    void shutdown_send() override { out_->finish(); }

    void close() noexcept override {
        if (closed_) {
            return;
        }
        closed_ = true;
        in_->abort_reader();
        out_->abort_writer();
        in_->break_off();
        out_->finish();
    }

    int native_handle() const noexcept override { return -1; }

private:
    asio::any_io_executor executor_;
    std::shared_ptr<lane> in_;
    std::shared_ptr<lane> out_;
    bool closed_ = false;
};

} // namespace

std::pair<stream_ptr, stream_ptr> memory_pair(const asio::any_io_executor& executor, std::size_t capacity,
                                              std::size_t piece) {
    auto there = std::make_shared<lane>(executor, capacity, piece);
    auto back = std::make_shared<lane>(executor, capacity, piece);
    return {std::make_unique<memory_stream>(executor, back, there),
            std::make_unique<memory_stream>(executor, there, back)};
}

} // namespace sandboxd::net
