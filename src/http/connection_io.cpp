#include "http/connection.hpp"
#include "net/connect.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <sys/socket.h>

namespace sandboxd::http {

namespace asio = boost::asio;

namespace {
constexpr std::size_t read_size = 16 * 1024;

/// What is left of the buffers, empty ones at the front left out.
std::span<asio::const_buffer> without(std::span<asio::const_buffer> buffers, std::size_t sent) {
    while (!buffers.empty() && sent >= buffers.front().size()) {
        sent -= buffers.front().size();
        buffers = buffers.subspan(1);
    }
    if (!buffers.empty()) {
        buffers.front() += sent;
    }
    return buffers;
}
} // namespace

task<std::size_t> connection::receive(asio::mutable_buffer into) {
    if (ended_ || broken_) {
        co_return 0;
    }
    const auto [failed, bytes] = co_await stream_->async_read_some(into, asio::as_tuple(asio::use_awaitable));
    if (failed || bytes == 0) {
        ended_ = true;
        co_return 0;
    }
    co_return bytes;
}

task<std::size_t> connection::receive_more() {
    const auto bytes = co_await receive(input_.prepare(read_size));
    input_.commit(bytes);
    co_return bytes;
}

task<bool> connection::transmit(std::span<asio::const_buffer> buffers) {
    std::uint64_t done = 0;
    if (!broken_ && input_.size() == 0) {
        // Mostly all of it fits into the socket: a wait and what belongs to one cost more than the answer
        // itself. Who has sent more requests already waits all the same: answered in one go, they would hold
        // up everybody else on this thread.
        done = stream_->write_now(buffers);
        buffers = without(buffers, done);
    }
    const auto began = std::chrono::steady_clock::now();
    auto now = began;
    writing_ = true;
    while (!broken_ && !buffers.empty()) {
        // Some progress in every stall_time, and a minimal rate in the long run.
        const auto pace = std::chrono::seconds(done / shared_.bounds.min_rate);
        watch_->until(
            std::min(now + shared_.bounds.stall_time, began + shared_.bounds.stall_time * 2 + pace));
        const auto [failed, bytes] =
            co_await stream_->async_write_some(buffers, asio::as_tuple(asio::use_awaitable));
        if (failed) {
            broken_ = true;
            break;
        }
        done += bytes;
        buffers = without(buffers, bytes);
        now = std::chrono::steady_clock::now();
    }
    writing_ = false;
    watch_->never();
    co_return !broken_;
}

task<bool> connection::transmit(std::string_view one) {
    std::array<asio::const_buffer, 1> buffers{asio::buffer(one)};
    co_return co_await transmit(buffers);
}

bool connection::gone() const noexcept {
    return broken_ || net::peer_gone(*stream_);
}

bool connection::half_closed() const noexcept {
    return broken_ || net::peer_sends_no_more(*stream_);
}

/// The watchdog: a stalled reader loses the connection; a stalled sender only its way in, so that it can
/// still be told.
void connection::expired() {
    late_ = true;
    const int fd = stream_->native_handle();
    if (writing_ || phase_ == phase::idle || phase_ == phase::closing || fd < 0) {
        stream_->close();
        return;
    }
    (void)::shutdown(fd, SHUT_RD); // a pending read ends as if the peer had sent its last
}

} // namespace sandboxd::http
