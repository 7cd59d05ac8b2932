#include "net/connect.hpp"

#include "core/deadline.hpp"
#include "net/socket_stream.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <sys/socket.h>
#include <sys/un.h>
#include <utility>

namespace sandboxd::net {

using asio::ip::tcp;
using boost::system::error_code;

result<stream_ptr> connect_unix(const asio::any_io_executor& executor, const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.empty() || path.size() >= sizeof address.sun_path) {
        return error{errc::invalid, "the path of a Unix socket has 1 to 107 bytes: " + path};
    }
    std::memcpy(address.sun_path, path.data(), path.size());
    core::unique_fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!socket) {
        return os_error("cannot make a Unix socket", errno);
    }
    if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        return os_error("cannot connect to " + path, errno);
    }
    return wrap_socket(executor, std::move(socket), AF_UNIX);
}

result<stream_ptr> adopt(const asio::any_io_executor& executor, core::unique_fd socket) {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
        return os_error("not a socket", errno);
    }
    const int flags = ::fcntl(socket.get(), F_GETFL);
    if (flags < 0 || ::fcntl(socket.get(), F_SETFL, flags | O_NONBLOCK) != 0 ||
        ::fcntl(socket.get(), F_SETFD, FD_CLOEXEC) != 0) {
        return os_error("cannot prepare a socket", errno);
    }
    tune(socket.get(), address.ss_family);
    return wrap_socket(executor, std::move(socket), address.ss_family);
}

namespace {

task<result<stream_ptr>> accept_one(asio::any_io_executor executor, core::unique_fd listening) {
    const int fd = listening.get();
    asio::posix::stream_descriptor ready(executor, listening.release());
    const auto [failed] = co_await ready.async_wait(asio::posix::stream_descriptor::wait_read,
                                                    asio::as_tuple(asio::use_awaitable));
    if (failed) {
        co_return error{errc::io, "cannot wait for a connection: " + failed.message()};
    }
    core::unique_fd peer(::accept4(fd, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!peer) {
        co_return os_error("cannot accept a connection", errno);
    }
    co_return wrap_socket(executor, std::move(peer), AF_UNIX);
}

} // namespace

task<result<stream_ptr>> accept_within(asio::any_io_executor executor, int listening,
                                       std::chrono::milliseconds within) {
    core::unique_fd own(::fcntl(listening, F_DUPFD_CLOEXEC, 3));
    const int flags = own ? ::fcntl(own.get(), F_GETFL) : -1;
    if (flags < 0 || ::fcntl(own.get(), F_SETFL, flags | O_NONBLOCK) != 0) {
        co_return os_error("a listening socket", errno);
    }
    auto answer = co_await core::with_timeout(accept_one(executor, std::move(own)), within);
    co_return answer ? std::move(*answer) : error{errc::timeout, "nobody has connected in time"};
}

namespace {

/// A look-up under way. Its thread sits in the C library until a name server has answered or been given up,
/// which can take half a minute and can't be cut short: who waits for it can leave.
struct lookup {
    explicit lookup(const asio::any_io_executor& executor)
        : resolver(executor), finished(executor, asio::steady_timer::time_point::max()) {}

    tcp::resolver resolver;
    asio::steady_timer finished;
    error_code failed = asio::error::operation_aborted; ///< until it has ended
    tcp::resolver::results_type found;
};

task<tcp::resolver::results_type> look_up(asio::any_io_executor executor, std::string host, std::string port,
                                          error_code& failed) {
    const auto one = std::make_shared<lookup>(executor);
    one->resolver.async_resolve(host, port, [one](error_code ended, tcp::resolver::results_type found) {
        one->failed = ended;
        one->found = std::move(found);
        one->finished.cancel();
    });
    co_await one->finished.async_wait(asio::as_tuple(asio::use_awaitable));
    failed = one->failed;
    co_return std::move(one->found);
}

} // namespace

task<result<stream_ptr>> connect_tcp(asio::any_io_executor executor, std::string host, std::string port) {
    const std::string where = host + ":" + port;
    error_code unknown;
    const auto found = co_await look_up(executor, std::move(host), std::move(port), unknown);
    if (unknown) {
        co_return error{errc::io, "cannot look up " + where + ": " + unknown.message()};
    }
    error last{errc::io, "cannot connect to " + where + ": no address"};
    for (const auto& entry : found) {
        tcp::socket socket(executor);
        boost::system::error_code failed;
        socket.open(entry.endpoint().protocol(), failed);
        if (!failed) {
            (void)::fcntl(socket.native_handle(), F_SETFD, FD_CLOEXEC);
            const auto [refused] =
                co_await socket.async_connect(entry.endpoint(), asio::as_tuple(asio::use_awaitable));
            failed = refused;
        }
        if (!failed) {
            core::unique_fd taken(socket.release(failed));
            co_return adopt(executor, std::move(taken));
        }
        last.message = "cannot connect to " + where + ": " + failed.message();
    }
    co_return last;
}

} // namespace sandboxd::net
