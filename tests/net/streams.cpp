#include "core/gate.hpp"
#include "core/log.hpp"
#include "core/spawn.hpp"
#include "net/connect.hpp"
#include "net/listener.hpp"
#include "net/socket_stream.hpp"
#include "support/run.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/test/unit_test.hpp>

#include <array>
#include <fcntl.h>
#include <filesystem>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <vector>

using namespace sandboxd;
using namespace std::chrono_literals;
namespace asio = boost::asio;
using boost::system::error_code;

namespace {

constexpr auto token = asio::as_tuple(asio::use_awaitable);

task<std::string> read_to_end(net::stream& from) {
    std::string all;
    std::array<char, 1000> piece{};
    for (;;) {
        const auto [failed, bytes] = co_await from.async_read_some(asio::buffer(piece), token);
        if (failed) {
            all += failed == asio::error::eof ? "" : " " + failed.message();
            co_return all;
        }
        all.append(piece.data(), bytes);
    }
}

task<error_code> read_once(net::stream& from) {
    std::array<char, 10> piece{};
    const auto [failed, bytes] = co_await from.async_read_some(asio::buffer(piece), token);
    co_return failed;
}

task<void> keep_error(net::stream& from, error_code& failed) {
    std::array<char, 10> piece{};
    // A callback, not the coroutine's own wait, so that the error is seen after a cancellation too.
    try {
        const auto [error, bytes] = co_await from.async_read_some(asio::buffer(piece), token);
        failed = error;
    } catch (const boost::system::system_error& e) {
        failed = e.code();
    }
}

/// Both directions, several buffers, half-close.
task<std::string> exchange(net::stream& a, net::stream& b) {
    const std::array<asio::const_buffer, 3> pieces{asio::buffer("one,", 4), asio::const_buffer(),
                                                   asio::buffer("two", 3)};
    const auto [failed, bytes] = co_await a.async_write_some(pieces, token);
    a.shutdown_send();
    std::string heard = co_await read_to_end(b);
    const auto [refused, more] = co_await b.async_write_some(asio::buffer("!three", 6), token);
    b.shutdown_send();
    heard += co_await read_to_end(a);
    heard += failed || refused ? " failed" : "";
    co_return heard;
}

task<result<net::accepted>> next_of(net::listener& one) {
    co_return co_await one.accept();
}

/// A listener on `host` takes one connection made to `to`.
std::string over_tcp(const std::string& host, const std::string& to, std::string& peer) {
    asio::io_context context;
    auto listeners = net::listen_tcp(context.get_executor(), host, 0);
    BOOST_REQUIRE_MESSAGE(listeners, (listeners ? "" : listeners.error().message));
    auto& listener = *listeners->front();
    auto mine =
        test::get(context, net::connect_tcp(context.get_executor(), to, std::to_string(listener.port())));
    BOOST_REQUIRE_MESSAGE(mine, (mine ? "" : mine.error().message));
    auto theirs = test::get(context, next_of(listener));
    BOOST_REQUIRE(theirs);
    const int fd = theirs->stream->native_handle();
    int on = 0;
    socklen_t size = sizeof on;
    ::getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, &size);
    BOOST_TEST(on == 1);
    BOOST_TEST(::fcntl(fd, F_GETFD) == FD_CLOEXEC);
    BOOST_TEST(::fcntl((*mine)->native_handle(), F_GETFD) == FD_CLOEXEC);
    peer = theirs->peer;
    return test::get(context, exchange(**mine, *theirs->stream));
}

} // namespace

BOOST_AUTO_TEST_CASE(what_can_be_sent_at_once) {
    asio::io_context context;
    int ends[2]; // NOLINT: filled by the call
    BOOST_REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
    const auto mine = net::wrap_socket(context.get_executor(), core::unique_fd(ends[0]), AF_UNIX).value();
    auto theirs = net::wrap_socket(context.get_executor(), core::unique_fd(ends[1]), AF_UNIX).value();
    const std::array<asio::const_buffer, 3> pieces{asio::buffer("one,", 4), asio::const_buffer(),
                                                   asio::buffer("two", 3)};
    BOOST_TEST(mine->write_now(pieces) == 7U);
    const std::string large(64 * 1024 * 1024, 'x');
    const asio::const_buffer much = asio::buffer(large);
    const auto sent = mine->write_now({&much, 1});
    BOOST_TEST(sent > 0U);
    BOOST_TEST(sent < large.size()); // as much as the socket takes
    BOOST_TEST(mine->write_now({&much, 1}) == 0U);
    mine->shutdown_send();
    BOOST_TEST(test::get(context, read_to_end(*theirs)) == "one,two" + large.substr(0, sent));
    theirs->close();
    BOOST_TEST(mine->write_now({&much, 1}) == 0U); // without a signal
    mine->close();
    BOOST_TEST(mine->write_now({&much, 1}) == 0U);
}

BOOST_AUTO_TEST_CASE(tcp_over_ipv4_and_all_interfaces) {
    std::string peer;
    BOOST_TEST(over_tcp("127.0.0.1", "127.0.0.1", peer) == "one,two!three");
    BOOST_TEST(peer.starts_with("127.0.0.1:"));
    // Empty is every interface; an IPv4 client is shown as one.
    BOOST_TEST(over_tcp("", "127.0.0.1", peer) == "one,two!three");
    BOOST_TEST(peer.starts_with("127.0.0.1:"));
    BOOST_TEST(over_tcp("localhost", "127.0.0.1", peer) == "one,two!three");
}

BOOST_AUTO_TEST_CASE(tcp_over_ipv6) {
    const core::unique_fd probe(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in6 loopback{};
    loopback.sin6_family = AF_INET6;
    loopback.sin6_addr = in6addr_loopback;
    if (!probe || ::bind(probe.get(), reinterpret_cast<sockaddr*>(&loopback), sizeof loopback) != 0) {
        BOOST_TEST_MESSAGE("this host has no IPv6");
        return;
    }
    std::string peer;
    BOOST_TEST(over_tcp("::1", "::1", peer) == "one,two!three");
    BOOST_TEST(peer.starts_with("[::1]:"));
}

BOOST_AUTO_TEST_CASE(a_port_that_is_taken_is_an_error_with_its_name) {
    asio::io_context context;
    auto first = net::listen_tcp(context.get_executor(), "127.0.0.1", 0);
    BOOST_REQUIRE(first);
    const auto port = first->front()->port();
    BOOST_TEST(first->front()->address() == "127.0.0.1:" + std::to_string(port));
    auto second = net::listen_tcp(context.get_executor(), "127.0.0.1", port);
    BOOST_REQUIRE(!second);
    BOOST_TEST(second.error().message ==
               "cannot listen on 127.0.0.1, port " + std::to_string(port) + ": Address already in use");
    auto unknown = net::listen_tcp(context.get_executor(), "256.0.0.1.invalid", 0);
    BOOST_REQUIRE(!unknown);
    BOOST_TEST((unknown.error().code == errc::invalid));
    first->clear();
    auto refused =
        test::get(context, net::connect_tcp(context.get_executor(), "127.0.0.1", std::to_string(port)));
    BOOST_REQUIRE(!refused);
    BOOST_TEST(refused.error().message ==
               "cannot connect to 127.0.0.1:" + std::to_string(port) + ": Connection refused");
}

namespace {
task<void> accept_until_closed(net::listener& one, int& taken, bool& ended) {
    for (;;) {
        auto next = co_await one.accept();
        if (!next) {
            ended = next.error().code == errc::gone;
            co_return;
        }
        ++taken;
    }
}
} // namespace

BOOST_AUTO_TEST_CASE(closing_a_listener_ends_its_accept) {
    asio::io_context context;
    core::gate inside;
    auto listeners = net::listen_tcp(context.get_executor(), "127.0.0.1", 0);
    auto& one = *listeners->front();
    int taken = 0;
    bool ended = false;
    core::spawn(one.get_executor(), "test", inside, accept_until_closed(one, taken, ended));
    context.poll();
    BOOST_TEST(!ended);
    asio::post(one.get_executor(), [&] { one.close(); });
    context.restart();
    context.run_for(60s);
    BOOST_TEST(ended);
    BOOST_TEST(inside.inside() == 0U);
}

BOOST_AUTO_TEST_CASE(a_listener_rides_out_a_lack_of_descriptors) {
    asio::io_context context;
    core::gate inside;
    auto listeners = net::listen_tcp(context.get_executor(), "127.0.0.1", 0);
    auto& one = *listeners->front();
    core::unique_fd caller(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(one.port());
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    BOOST_REQUIRE_EQUAL(::connect(caller.get(), reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
    // The logger is made now: what makes it needs descriptors, and so do the sanitizers' checks of it.
    core::log::set_level("error");
    rlimit old{};
    ::getrlimit(RLIMIT_NOFILE, &old);
    const core::unique_fd top(::dup(0));
    const rlimit none{static_cast<rlim_t>(top.get()), old.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &none);
    int taken = 0;
    bool ended = false;
    core::spawn(one.get_executor(), "test", inside, accept_until_closed(one, taken, ended));
    context.run_for(50ms);
    const int taken_without = taken;
    ::setrlimit(RLIMIT_NOFILE, &old);
    context.restart();
    while (taken == 0 && context.run_one_for(10s) > 0) {
    }
    BOOST_TEST(taken_without == 0);
    BOOST_TEST(taken == 1);
    one.close();
    context.restart();
    context.run_for(60s);
    BOOST_TEST(ended);
    BOOST_TEST(inside.inside() == 0U);
}

BOOST_AUTO_TEST_CASE(a_unix_socket_is_listened_on_and_connected_to) {
    asio::io_context context;
    std::string folder = (std::filesystem::temp_directory_path() / "sandboxd-net-XXXXXX").string();
    BOOST_REQUIRE(::mkdtemp(folder.data()) != nullptr);
    const std::string path = folder + "/s";
    {
        auto nobody = net::connect_unix(context.get_executor(), path);
        BOOST_REQUIRE(!nobody);
        BOOST_TEST(nobody.error().message == "cannot connect to " + path + ": No such file or directory");
        auto listener = net::listen_unix(context.get_executor(), path);
        BOOST_REQUIRE(listener);
        BOOST_TEST((*listener)->address() == path);
        BOOST_TEST((*listener)->port() == 0U);
        auto mine = net::connect_unix(context.get_executor(), path);
        BOOST_REQUIRE(mine);
        auto theirs = test::get(context, next_of(**listener));
        BOOST_REQUIRE(theirs);
        BOOST_TEST(theirs->peer == "unix");
        BOOST_TEST(test::get(context, exchange(**mine, *theirs->stream)) == "one,two!three");
    }
    BOOST_TEST(!std::filesystem::exists(path));
    std::filesystem::remove(folder);
    auto longer = net::connect_unix(context.get_executor(), "/" + std::string(200, 'a'));
    BOOST_REQUIRE(!longer);
    BOOST_TEST((longer.error().code == errc::invalid));
}

BOOST_AUTO_TEST_CASE(an_expected_peer_is_waited_for) {
    asio::io_context context;
    const auto folder = std::filesystem::temp_directory_path() / ("net-" + std::to_string(::getpid()) + "-w");
    std::filesystem::create_directory(folder);
    const auto path = (folder / "socket").string();
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    const core::unique_fd listening(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    BOOST_REQUIRE_EQUAL(::bind(listening.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
                        0);
    BOOST_REQUIRE_EQUAL(::listen(listening.get(), 4), 0);
    const auto nobody = test::get(context, net::accept_within(context.get_executor(), listening.get(), 20ms));
    BOOST_REQUIRE(!nobody);
    BOOST_TEST((nobody.error().code == errc::timeout));
    // It goes on listening: one after the other.
    for (int round = 0; round < 2; ++round) {
        auto mine = net::connect_unix(context.get_executor(), path);
        BOOST_REQUIRE(mine);
        auto theirs = test::get(context, net::accept_within(context.get_executor(), listening.get(), 10s));
        BOOST_REQUIRE(theirs);
        BOOST_TEST(test::get(context, exchange(**mine, **theirs)) == "one,two!three");
    }
    const auto none = test::get(context, net::accept_within(context.get_executor(), -1, 10s));
    BOOST_REQUIRE(!none);
    std::filesystem::remove_all(folder);
}

BOOST_AUTO_TEST_CASE(a_connected_socket_is_adopted) {
    asio::io_context context;
    int pair[2] = {-1, -1};
    BOOST_REQUIRE_EQUAL(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    auto a = net::adopt(context.get_executor(), core::unique_fd(pair[0]));
    auto b = net::adopt(context.get_executor(), core::unique_fd(pair[1]));
    BOOST_REQUIRE(a);
    BOOST_REQUIRE(b);
    BOOST_TEST(::fcntl((*a)->native_handle(), F_GETFD) == FD_CLOEXEC);
    BOOST_TEST(!net::peer_gone(**a));
    BOOST_TEST(test::get(context, exchange(**a, **b)) == "one,two!three");
    (*b)->close();
    BOOST_TEST(net::peer_gone(**a));
    auto nothing =
        net::adopt(context.get_executor(), core::unique_fd(::open("/dev/null", O_RDONLY | O_CLOEXEC)));
    BOOST_TEST(!nothing);
}

BOOST_AUTO_TEST_CASE(memory_streams_carry_bytes_in_any_split) {
    for (const std::size_t capacity : {7UL, 65536UL}) {
        for (const std::size_t piece : {1UL, 3UL, 65536UL}) {
            asio::io_context context;
            auto [a, b] = net::memory_pair(context.get_executor(), capacity, piece);
            BOOST_TEST(test::get(context, exchange(*a, *b)) == "one,two!three");
            BOOST_TEST(a->native_handle() == -1);
        }
    }
}

namespace {
struct end {
    std::unique_ptr<net::stream> mine;
    std::unique_ptr<net::stream> theirs;
};

end make(asio::io_context& context, bool memory) {
    if (memory) {
        auto [a, b] = net::memory_pair(context.get_executor());
        return {std::move(a), std::move(b)};
    }
    int pair[2] = {-1, -1};
    BOOST_REQUIRE_EQUAL(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    auto mine = net::adopt(context.get_executor(), core::unique_fd(pair[0]));
    auto theirs = net::adopt(context.get_executor(), core::unique_fd(pair[1]));
    return {std::move(*mine), std::move(*theirs)};
}
} // namespace

BOOST_AUTO_TEST_CASE(a_pending_read_ends_by_cancellation_and_by_close) {
    for (const bool memory : {false, true}) {
        asio::io_context context;
        core::gate inside;
        auto both = make(context, memory);
        error_code failed;
        auto signal = std::make_shared<asio::cancellation_signal>();
        core::spawn(context.get_executor(), "test", inside, keep_error(*both.mine, failed), signal);
        context.poll();
        BOOST_TEST(inside.inside() == 1U);
        signal->emit(asio::cancellation_type::terminal);
        context.restart();
        context.run_for(60s);
        BOOST_TEST(failed == asio::error::operation_aborted);
        failed = {};
        core::spawn(context.get_executor(), "test", inside, keep_error(*both.mine, failed));
        context.restart();
        context.poll();
        both.mine->close();
        both.mine->close();
        context.restart();
        context.run_for(60s);
        BOOST_TEST(failed == asio::error::operation_aborted);
        BOOST_TEST(test::get(context, read_once(*both.theirs)) == asio::error::eof);
        BOOST_TEST(test::get(context, read_once(*both.mine)) == asio::error::bad_descriptor);
        BOOST_TEST(inside.inside() == 0U);
    }
}
