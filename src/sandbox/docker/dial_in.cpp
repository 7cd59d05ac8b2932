#include "sandbox/docker/dial_in.hpp"

#include "core/deadline.hpp"
#include "net/connect.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <optional>

namespace sandboxd::sandboxes::docker_backend {

namespace asio = boost::asio;

namespace {

constexpr int backlog = 16;
constexpr std::chrono::milliseconds after_a_stranger{10};

/// Through the directory's descriptor: no path is too long for a socket address then.
sockaddr_un address_in(int directory) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const auto path = "/proc/self/fd/" + std::to_string(directory) + "/" + dial_socket;
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    return address;
}

task<result<net::stream_ptr>> accept_from(asio::any_io_executor executor, core::unique_fd listener,
                                          pid_t peer) {
    asio::posix::stream_descriptor waiting(executor, listener.release());
    for (;;) {
        core::unique_fd one(
            ::accept4(waiting.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (one) {
            ucred who{};
            socklen_t size = sizeof who;
            if (::getsockopt(one.get(), SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 && who.pid == peer) {
                co_return net::adopt(executor, std::move(one));
            }
            one.reset();
            co_await core::sleep_for(after_a_stranger);
            continue;
        }
        if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
            co_return os_error("accepting an agent's connection", errno);
        }
        const auto [failed] = co_await waiting.async_wait(asio::posix::stream_descriptor::wait_read,
                                                          asio::as_tuple(asio::use_awaitable));
        if (failed) {
            co_return error{errc::io, "waiting for an agent's connection: " + failed.message()};
        }
    }
}

} // namespace

result<dial_in> dial_in::open(const std::string& directory) {
    if (::mkdir(directory.c_str(), 0755) != 0 && errno != EEXIST) {
        return os_error("creating " + directory, errno);
    }
    const core::unique_fd place(::open(directory.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    core::unique_fd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!place || !listener) {
        return os_error(directory, errno);
    }
    ::unlinkat(place.get(), dial_socket, 0);
    const auto address = address_in(place.get());
    // Whatever uid the agent has may connect; the directory keeps everybody else away.
    if (::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::chmod(address.sun_path, 0666) != 0 || ::listen(listener.get(), backlog) != 0) {
        return os_error("listening in " + directory, errno);
    }
    return dial_in(std::move(listener));
}

task<result<net::stream_ptr>> dial_in::accept(asio::any_io_executor executor, pid_t peer,
                                              std::chrono::milliseconds limit) const {
    core::unique_fd copy(::fcntl(listener_.get(), F_DUPFD_CLOEXEC, 3));
    if (!copy) {
        co_return os_error("waiting for an agent's connection", errno);
    }
    auto work = accept_from(executor, std::move(copy), peer);
    auto accepted = co_await core::with_timeout(std::move(work), limit);
    if (!accepted) {
        co_return error{errc::timeout, "the agent did not connect in time"};
    }
    co_return std::move(*accepted);
}

void remove_dial_directory(const std::string& directory) noexcept {
    ::unlink((directory + "/" + dial_socket).c_str());
    ::rmdir(directory.c_str());
}

} // namespace sandboxd::sandboxes::docker_backend
