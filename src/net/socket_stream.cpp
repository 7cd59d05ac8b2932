#include "net/socket_stream.hpp"

#include "net/connect.hpp"

#include <boost/asio/generic/stream_protocol.hpp>

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

namespace sandboxd::net {

namespace {

/// Asio copies the sequence into its operation, so it must own its list.
class buffer_list {
public:
    explicit buffer_list(std::span<const asio::const_buffer> buffers)
        : size_(std::min(buffers.size(), stream::max_buffers)) {
        std::copy_n(buffers.begin(), size_, list_.begin());
    }
    using value_type = asio::const_buffer;
    using const_iterator = const asio::const_buffer*;
    [[nodiscard]] const_iterator begin() const { return list_.data(); }
    [[nodiscard]] const_iterator end() const { return list_.data() + size_; }

private:
    std::array<asio::const_buffer, stream::max_buffers> list_;
    std::size_t size_;
};

class socket_stream final : public stream {
public:
    explicit socket_stream(asio::generic::stream_protocol::socket socket) : socket_(std::move(socket)) {}

    asio::any_io_executor get_executor() override { return socket_.get_executor(); }

    void read_some(asio::mutable_buffer buffer, io_handler handler) override {
        socket_.async_read_some(buffer, std::move(handler));
    }

    void write_some(std::span<const asio::const_buffer> buffers, io_handler handler) override {
        socket_.async_write_some(buffer_list(buffers), std::move(handler));
    }

    std::size_t write_now(std::span<const asio::const_buffer> buffers) override {
        std::array<iovec, max_buffers> pieces;
        const auto count = std::min(buffers.size(), pieces.size());
        for (std::size_t i = 0; i < count; ++i) {
            pieces[i] = {.iov_base = const_cast<void*>(buffers[i].data()), .iov_len = buffers[i].size()};
        }
        msghdr message{};
        message.msg_iov = pieces.data();
        message.msg_iovlen = count;
        const auto sent = ::sendmsg(socket_.native_handle(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
        return sent > 0 ? static_cast<std::size_t>(sent) : 0;
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
        // The accessor is not const; a closed socket answers -1.
        return const_cast<asio::generic::stream_protocol::socket&>(socket_).native_handle();
    }

private:
    asio::generic::stream_protocol::socket socket_;
};

} // namespace

result<stream_ptr> wrap_socket(const asio::any_io_executor& executor, core::unique_fd socket, int family) {
    boost::system::error_code failed;
    asio::generic::stream_protocol::socket made(executor);
    made.assign(asio::generic::stream_protocol(family, 0), socket.get(), failed);
    if (failed) {
        return os_error("cannot use a socket", failed.value());
    }
    (void)socket.release();
    return stream_ptr(std::make_unique<socket_stream>(std::move(made)));
}

void tune(int socket, int family) noexcept {
    if (family != AF_INET && family != AF_INET6) {
        return;
    }
    const int on = 1;
    (void)::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    (void)::setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

std::string name_of(const sockaddr* address) {
    std::array<char, INET6_ADDRSTRLEN> text{};
    if (address->sa_family == AF_INET) {
        const auto* v4 = reinterpret_cast<const sockaddr_in*>(address);
        ::inet_ntop(AF_INET, &v4->sin_addr, text.data(), text.size());
        return std::string(text.data()) + ":" + std::to_string(ntohs(v4->sin_port));
    }
    if (address->sa_family == AF_INET6) {
        const auto* v6 = reinterpret_cast<const sockaddr_in6*>(address);
        if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) {
            // An IPv4 client of a listener for both is shown as what it is.
            ::inet_ntop(AF_INET, &v6->sin6_addr.s6_addr[12], text.data(), text.size());
            return std::string(text.data()) + ":" + std::to_string(ntohs(v6->sin6_port));
        }
        ::inet_ntop(AF_INET6, &v6->sin6_addr, text.data(), text.size());
        return "[" + std::string(text.data()) + "]:" + std::to_string(ntohs(v6->sin6_port));
    }
    return "unix";
}

bool peer_gone(const stream& one) noexcept {
    const int fd = one.native_handle();
    if (fd < 0) {
        return false;
    }
    pollfd asked{.fd = fd, .events = 0, .revents = 0};
    // POLLERR: reset. POLLHUP: both directions are over. A half-closed peer raises neither.
    return ::poll(&asked, 1, 0) > 0 && (asked.revents & (POLLERR | POLLHUP)) != 0;
}

bool peer_sends_no_more(const stream& one) noexcept {
    const int fd = one.native_handle();
    if (fd < 0) {
        return false;
    }
    pollfd asked{.fd = fd, .events = POLLRDHUP, .revents = 0};
    return ::poll(&asked, 1, 0) > 0 && (asked.revents & (POLLRDHUP | POLLERR | POLLHUP)) != 0;
}

} // namespace sandboxd::net
