#include "agent_client.hpp"

#include <boost/test/unit_test.hpp>

namespace {

using namespace sandboxd::agent::test;
namespace protocol = sandboxd::protocol;
using protocol::start_mode;

struct fixture {
    agent_process agent;
    client host{agent};

    static start terminal(const std::string& text) {
        auto out = start::script(text);
        out.mode(start_mode::terminal).with([](protocol::frame_writer& frame) {
            frame.u16(protocol::tag::rows, 33).u16(protocol::tag::columns, 101);
        });
        return out;
    }
};

BOOST_FIXTURE_TEST_SUITE(agent_terminal, fixture)

BOOST_AUTO_TEST_CASE(it_has_a_size_and_is_the_controlling_one) {
    const auto end =
        host.run(terminal("stty size; test -t 0 && test -t 1 && test -t 2 && echo all; echo x > /dev/tty"));
    BOOST_TEST(end.out == "33 101\r\nall\r\nx\r\n");
    BOOST_TEST(end.err.empty());
    BOOST_TEST(end.exit_code.value() == 0U);
}

BOOST_AUTO_TEST_CASE(a_resize_is_seen) {
    const auto stream =
        host.begin(terminal("trap 'stty size; exit 5' WINCH; echo up; while :; do sleep 0.05; done"));
    BOOST_REQUIRE(host.pump([&] { return host.at(stream).out == "up\r\n"; }));
    std::string resize;
    protocol::append_resize(resize, stream, 44, 132);
    host.send(resize);
    const auto end = host.finish(stream);
    BOOST_TEST(end.out == "up\r\n44 132\r\n");
    BOOST_TEST(end.exit_code.value() == 5U);
    host.send(resize); // of a finished command: ignored
    BOOST_TEST(host.run(start({"true"})).exit_code.value() == 0U);
}

BOOST_AUTO_TEST_CASE(input_is_typed_and_its_end_is_an_end_of_file) {
    const auto stream = host.begin(terminal("stty -echo; echo up; cat; echo end"));
    BOOST_REQUIRE(host.pump([&] { return host.at(stream).out == "up\r\n"; }));
    host.write(stream, "hello\n");
    BOOST_REQUIRE(host.pump([&] { return host.at(stream).out == "up\r\nhello\r\n"; }));
    host.end_input(stream);
    BOOST_TEST(host.finish(stream).out == "up\r\nhello\r\nend\r\n");
}

BOOST_AUTO_TEST_CASE(output_is_whole_every_time) {
    std::string expected;
    for (int i = 1; i <= 5'000; ++i) {
        expected += std::to_string(i) + "\r\n";
    }
    for (int i = 0; i < 50; ++i) {
        BOOST_REQUIRE((host.run(terminal("seq 5000")).out == expected));
    }
}

BOOST_AUTO_TEST_CASE(a_child_in_the_background_does_not_hold_the_end) {
    const auto end = host.run(terminal("setsid sleep 300 & echo hi"));
    BOOST_TEST(end.out == "hi\r\n");
    BOOST_TEST(end.duration_us < 60'000'000U);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
