#include "launcher/message.hpp"

#include "launcher/requests.hpp"

#include <boost/test/unit_test.hpp>

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

using namespace sandboxd;
using namespace sandboxd::launcher;

namespace {

struct pair_fixture {
    pair_fixture() {
        int ends[2];
        BOOST_REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
        left.reset(ends[0]);
        right.reset(ends[1]);
    }
    core::unique_fd left, right;
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(launcher_message, pair_fixture)

BOOST_AUTO_TEST_CASE(a_packet_carries_text_and_descriptors) {
    int ends[2];
    BOOST_REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    const core::unique_fd reading(ends[0]);
    const core::unique_fd writing(ends[1]);
    const std::array sent{reading.get(), writing.get()};
    BOOST_TEST((send_packet(left.get(), "hello", sent) == transfer::complete));
    packet got;
    BOOST_TEST((receive_packet(right.get(), got) == transfer::complete));
    BOOST_TEST(got.text == "hello");
    BOOST_REQUIRE(got.descriptors.size() == 2U);
    for (std::size_t i = 0; i < 2; ++i) {
        struct stat a{}, b{};
        BOOST_TEST(::fstat(sent[i], &a) == 0);
        BOOST_TEST(::fstat(got.descriptors[i].get(), &b) == 0);
        BOOST_TEST(a.st_ino == b.st_ino);
        BOOST_TEST((::fcntl(got.descriptors[i].get(), F_GETFD) & FD_CLOEXEC) != 0);
    }
}

BOOST_AUTO_TEST_CASE(nothing_there_would_block) {
    packet got;
    BOOST_TEST((receive_packet(right.get(), got) == transfer::would_block));
}

BOOST_AUTO_TEST_CASE(the_end_of_the_other_side_is_seen) {
    left.reset();
    packet got;
    BOOST_TEST((receive_packet(right.get(), got) == transfer::closed));
    BOOST_TEST((send_packet(right.get(), "x", {}) == transfer::closed));
}

BOOST_AUTO_TEST_CASE(too_much_is_refused_on_either_side) {
    BOOST_TEST((send_packet(left.get(), std::string(max_message + 1, 'x'), {}) == transfer::failed));
    BOOST_TEST((send_packet(left.get(), "", {}) == transfer::failed));
    const std::array three{0, 1, 2};
    BOOST_TEST((send_packet(left.get(), "x", three) == transfer::failed));

    const std::string big(max_message + 1, 'x');
    const int size = 4 * 1024 * 1024;
    ::setsockopt(left.get(), SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size);
    if (::send(left.get(), big.data(), big.size(), 0) == static_cast<ssize_t>(big.size())) {
        packet got;
        BOOST_TEST((receive_packet(right.get(), got) == transfer::failed));
        BOOST_TEST(errno == EMSGSIZE);
    }
}

BOOST_AUTO_TEST_SUITE_END()
