// Orders on their way to a supervisor.

#include "agent/orders.hpp"

#include <boost/test/unit_test.hpp>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>
#include <vector>

namespace {

using namespace sandboxd::agent;

struct socket_pair {
    socket_pair() {
        int ends[2];
        BOOST_REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
        ours.reset(ends[0]);
        theirs.reset(ends[1]);
    }
    descriptor ours;
    descriptor theirs;
};

struct taken {
    received what = received::nothing;
    order head;
    std::array<descriptor, most_descriptors> files;
    std::string payload;
};

/// What a supervisor gets.
taken take(int socket) {
    taken out;
    std::vector<char> text(inline_payload);
    descriptor files[most_descriptors];
    out.what = receive_order(socket, out.head, files, text);
    std::move(std::begin(files), std::end(files), out.files.begin());
    if ((out.head.flags & payload_file) == 0) {
        out.payload.assign(text.data(), out.head.size);
    } else {
        out.payload.resize(out.head.size + 1);
        const auto count = ::pread(out.files[0].get(), out.payload.data(), out.payload.size(), 0);
        BOOST_TEST(count == static_cast<ssize_t>(out.payload.size()));
        BOOST_TEST(out.payload.back() == '\0');
        out.payload.pop_back();
    }
    return out;
}

std::string pattern(std::size_t size) {
    std::string out(size, ' ');
    for (std::size_t i = 0; i < size; ++i) {
        out[i] = static_cast<char>('a' + i % 23);
    }
    return out;
}

BOOST_AUTO_TEST_SUITE(agent_orders)

BOOST_AUTO_TEST_CASE(a_command_follows_in_the_packet_while_it_fits) {
    for (const std::size_t size : {std::size_t{1}, std::size_t{65'700}, inline_payload, inline_payload + 1}) {
        const socket_pair sockets;
        const auto payload = pattern(size);
        const descriptor null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
        const int files[] = {null.get()};
        BOOST_REQUIRE(
            send_command(sockets.ours.get(), {.kind = order_kind::run, .flags = with_out}, payload, files));
        const auto got = take(sockets.theirs.get());
        BOOST_REQUIRE((got.what == received::order));
        BOOST_TEST((got.payload == payload), "size " << size);
        const bool in_file = size > inline_payload;
        BOOST_TEST(got.head.flags == (in_file ? with_out | payload_file : std::uint32_t{with_out}));
        BOOST_TEST(got.files[in_file ? 1 : 0].valid());
        BOOST_TEST(!got.files[in_file ? 2 : 1].valid());
    }
}

// As where net.core.wmem_default is low.
BOOST_AUTO_TEST_CASE(a_socket_that_takes_no_long_packet_gets_a_file) {
    const socket_pair sockets;
    const int little = 8 * 1024;
    BOOST_REQUIRE(::setsockopt(sockets.ours.get(), SOL_SOCKET, SO_SNDBUF, &little, sizeof little) == 0);
    const auto payload = pattern(60'000);
    BOOST_REQUIRE(send_command(sockets.ours.get(), {.kind = order_kind::run}, payload, {}));
    const auto got = take(sockets.theirs.get());
    BOOST_REQUIRE((got.what == received::order));
    BOOST_TEST(got.head.flags == std::uint32_t{payload_file});
    BOOST_TEST((got.payload == payload));
}

BOOST_AUTO_TEST_CASE(a_supervisor_that_is_gone_is_told_to_the_agent) {
    socket_pair sockets;
    sockets.theirs.reset();
    BOOST_TEST(!send_command(sockets.ours.get(), {.kind = order_kind::run}, pattern(100), {}));
    BOOST_TEST(!send_command(sockets.ours.get(), {.kind = order_kind::run}, pattern(200'000), {}));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
