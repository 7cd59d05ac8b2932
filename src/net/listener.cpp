#include "net/listener.hpp"

#include "core/fd.hpp"
#include "core/log.hpp"
#include "core/strand.hpp"
#include "net/socket_stream.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

namespace sandboxd::net {

namespace {

using namespace std::chrono_literals;

constexpr int backlog = 4096; // the kernel cuts it to its own maximum

class socket_listener final : public listener {
public:
    /// `remove` is the path of a Unix socket, or empty.
    socket_listener(const asio::any_io_executor& context, core::unique_fd socket, std::string address,
                    std::uint16_t port, std::string remove)
        : context_(context),
          socket_(asio::make_strand(context), socket.release()),
          pause_(socket_.get_executor()),
          address_(std::move(address)),
          port_(port),
          remove_(std::move(remove)) {}

    ~socket_listener() override { close(); }

    asio::any_io_executor get_executor() override { return socket_.get_executor(); }
    [[nodiscard]] std::string address() const override { return address_; }
    [[nodiscard]] std::uint16_t port() const noexcept override { return port_; }

    [[nodiscard]] task<result<accepted>> accept() override {
        auto rest = shortest_rest;
        while (!closed_) {
            sockaddr_storage from{};
            socklen_t size = sizeof from;
            // accept4 by hand: Asio's accept leaves the descriptor open for a program started meanwhile.
            core::unique_fd made(::accept4(socket_.native_handle(), reinterpret_cast<sockaddr*>(&from), &size,
                                           SOCK_NONBLOCK | SOCK_CLOEXEC));
            const int failed = errno;
            if (made) {
                auto ready = welcome(std::move(made), from);
                if (ready) {
                    co_return ready;
                }
            } else if (failed == EAGAIN) {
                co_await socket_.async_wait(asio::posix::descriptor_base::wait_read,
                                            asio::as_tuple(asio::use_awaitable));
            } else if (failed != EINTR && failed != ECONNABORTED) {
                core::log::warning("{} cannot accept a connection, pausing for {} ms: {}", address_,
                                   rest.count(), std::strerror(failed));
                pause_.expires_after(rest);
                co_await pause_.async_wait(asio::as_tuple(asio::use_awaitable));
                rest = std::min(rest * 2, longest_rest);
            }
        }
        co_return error{errc::gone, address_ + " is no longer listened on"};
    }

    void close() noexcept override {
        if (closed_) {
            return;
        }
        closed_ = true;
        boost::system::error_code ignored;
        socket_.close(ignored);
        pause_.cancel();
        if (!remove_.empty()) {
            ::unlink(remove_.c_str());
        }
    }

private:
    static constexpr std::chrono::milliseconds shortest_rest{10};
    static constexpr std::chrono::milliseconds longest_rest{1000};

    result<accepted> welcome(core::unique_fd made, const sockaddr_storage& from) {
        tune(made.get(), from.ss_family);
        auto stream = wrap_socket(core::make_strand(context_), std::move(made), from.ss_family);
        if (!stream) {
            return stream.error();
        }
        return accepted{std::move(*stream), name_of(reinterpret_cast<const sockaddr*>(&from))};
    }

    asio::any_io_executor context_;
    asio::posix::stream_descriptor socket_;
    asio::steady_timer pause_;
    std::string address_;
    std::uint16_t port_;
    std::string remove_;
    bool closed_ = false;
};

/// `failed` is the errno of an error answered.
result<listener_ptr> listen_on(const asio::any_io_executor& context, const sockaddr* address, socklen_t size,
                               const std::string& shown, const std::string& remove, int& failed) {
    core::unique_fd socket(::socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    const auto refused = [&] {
        failed = errno;
        return os_error("cannot listen on " + shown, failed);
    };
    if (!socket) {
        return refused();
    }
    const int on = 1;
    (void)::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (address->sa_family == AF_INET6) {
        const auto* v6 = reinterpret_cast<const sockaddr_in6*>(address);
        const int only = IN6_IS_ADDR_UNSPECIFIED(&v6->sin6_addr) ? 0 : 1;
        (void)::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof only);
    }
    if (::bind(socket.get(), address, size) != 0) {
        return refused();
    }
    if (::listen(socket.get(), backlog) != 0) {
        return refused();
    }
    sockaddr_storage bound{};
    socklen_t bound_size = sizeof bound;
    if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&bound), &bound_size) != 0) {
        return refused();
    }
    std::uint16_t port = 0;
    std::string name = remove;
    if (remove.empty()) {
        name = name_of(reinterpret_cast<const sockaddr*>(&bound));
        // The port is at the same place for both families.
        port = ntohs(reinterpret_cast<const sockaddr_in*>(&bound)->sin_port);
    }
    return listener_ptr(
        std::make_unique<socket_listener>(context, std::move(socket), std::move(name), port, remove));
}

/// Every interface: one socket for both families, or IPv4 alone where the host has no IPv6.
result<std::vector<listener_ptr>> listen_everywhere(const asio::any_io_executor& context,
                                                    std::uint16_t port) {
    const std::string shown = "all interfaces, port " + std::to_string(port);
    int failed = 0;
    sockaddr_in6 v6{};
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    auto made = listen_on(context, reinterpret_cast<const sockaddr*>(&v6), sizeof v6, shown, {}, failed);
    if (!made && (failed == EAFNOSUPPORT || failed == EADDRNOTAVAIL)) {
        sockaddr_in v4{};
        v4.sin_family = AF_INET;
        v4.sin_port = htons(port);
        made = listen_on(context, reinterpret_cast<const sockaddr*>(&v4), sizeof v4, shown, {}, failed);
    }
    if (!made) {
        return made.error();
    }
    std::vector<listener_ptr> all;
    all.push_back(std::move(*made));
    return all;
}

using found_addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

} // namespace

result<std::vector<listener_ptr>> listen_tcp(const asio::any_io_executor& context, const std::string& host,
                                             std::uint16_t port) {
    if (host.empty()) {
        return listen_everywhere(context, port);
    }
    const std::string shown = host + ", port " + std::to_string(port);
    addrinfo wanted{};
    wanted.ai_family = AF_UNSPEC;
    wanted.ai_socktype = SOCK_STREAM;
    wanted.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
    addrinfo* list = nullptr;
    if (const int failed = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wanted, &list);
        failed != 0) {
        return error{errc::invalid, "cannot listen on " + shown + ": " + ::gai_strerror(failed)};
    }
    const found_addresses owned(list, &::freeaddrinfo);
    std::vector<listener_ptr> all;
    error last{errc::io, "cannot listen on " + shown};
    for (const addrinfo* one = list; one != nullptr; one = one->ai_next) {
        if (port == 0 && !all.empty()) {
            // "localhost" has two addresses, which must share the port that the first one got.
            reinterpret_cast<sockaddr_in*>(one->ai_addr)->sin_port = htons(all.front()->port());
        }
        int failed = 0;
        auto made = listen_on(context, one->ai_addr, one->ai_addrlen, shown, {}, failed);
        if (made) {
            all.push_back(std::move(*made));
        } else if (failed != EADDRNOTAVAIL && failed != EAFNOSUPPORT) {
            return made.error();
        } else {
            last = made.error(); // a name for an address that this host does not have (IPv6 switched off)
        }
    }
    if (all.empty()) {
        return last;
    }
    return all;
}

result<listener_ptr> listen_unix(const asio::any_io_executor& context, const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.empty() || path.size() >= sizeof address.sun_path) {
        return error{errc::invalid, "the path of a Unix socket has 1 to 107 bytes: " + path};
    }
    std::memcpy(address.sun_path, path.data(), path.size());
    int failed = 0;
    return listen_on(context, reinterpret_cast<const sockaddr*>(&address), sizeof address, path, path,
                     failed);
}

} // namespace sandboxd::net
