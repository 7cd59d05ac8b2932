#include "agent_client.hpp"

#include <boost/test/unit_test.hpp>

#include <sys/socket.h>

#include <csignal>
#include <random>
#include <thread>

namespace {

using namespace sandboxd::agent::test;
using namespace std::chrono_literals;
namespace protocol = sandboxd::protocol;
using protocol::end_cause;
using protocol::frame_type;

struct fixture {
    agent_process agent;
};

/// Sends bytes over a connection of their own, after a hello if wanted, and waits until the agent closes it
/// or is quiet.
void throw_at(const agent_process& agent, bool greet, const std::string& bytes) {
    const int fd = agent.connect();
    std::string out;
    if (greet) {
        protocol::append_hello(out, {});
    }
    out += bytes;
    const timeval limit{.tv_sec = 0, .tv_usec = 20'000};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    ::send(fd, out.data(), out.size(), MSG_NOSIGNAL);
    shutdown(fd, SHUT_WR);
    char buffer[4096];
    while (recv(fd, buffer, sizeof buffer, 0) > 0) {
    }
    close(fd);
}

std::string frame(std::uint32_t length, int type, int flags, std::uint32_t stream,
                  const std::string& payload = {}) {
    const auto head = protocol::encode_header(
        {length, static_cast<frame_type>(type), static_cast<std::uint8_t>(flags), stream});
    return std::string(head.begin(), head.end()) + payload;
}

BOOST_FIXTURE_TEST_SUITE(agent_hostile, fixture)

BOOST_AUTO_TEST_CASE(a_lie_closes_the_channel_and_nothing_else) {
    const std::string start_frame = start({"true"}).frame(1);
    std::string over_window;
    for (int i = 0; i < 9; ++i) {
        over_window += frame(65'536, 12, 0, 1, std::string(65'536, 'x'));
    }
    const std::string lies[] = {
        frame(0, 0, 0, 0),
        frame(0, 99, 0, 1),
        frame(0xffffffff, 12, 0, 1),
        frame(0, 2, 0, 0),  // the agent's own
        frame(0, 17, 0, 0), // a stream frame about no stream
        frame(0, 10, 0, 0),
        frame(3, 10, 0, 1, "abc"),                                // no list of fields
        frame(7, 10, 0, 1, std::string("\x0a\0\1\0\0\0x", 7)),    // a short run id
        frame(7, 10, 0, 1, std::string("\x0f\0\1\0\0\0\x09", 7)), // no such mode
        start_frame + start_frame,                                // a number in use
        start_frame + frame(8, 13, 1, 1, std::string(8, '\x7f')), // credit for what was never sent
        start_frame + frame(3, 13, 1, 1, "abc"),
        start_frame + frame(0, 21, 0, 1),      // resume of what is not cut
        start_frame + frame(1, 12, 1, 1, "x"), // data on an output channel
        start({"sleep", "1"}).open_stdin().frame(1) + over_window,
        start_frame + frame(2, 18, 0, 1, "ab"),
        start_frame + frame(2, 19, 0, 1, "ab"),
        frame(5, 1, 0, 0, "hello"),
    };
    for (const auto& lie : lies) {
        throw_at(agent, true, lie);
        BOOST_REQUIRE(agent.alive());
        client host(agent);
        for (const auto& [number, held] : host.held()) {
            host.order(frame_type::stop, number);
            host.order(frame_type::forget, number);
        }
        BOOST_REQUIRE(host.run(start({"echo", "x"})).out == "x\n");
    }
    throw_at(agent, false, start_frame); // before the hello
    client host(agent);
    BOOST_TEST(host.run(start({"echo", "x"})).out == "x\n");
}

BOOST_AUTO_TEST_CASE(noise_and_broken_frames_never_end_the_agent) {
    std::mt19937 random(20'261'129); // seeded: the same noise every time
    const auto byte = [&] { return static_cast<char>(random()); };
    std::string good;
    good += start({"echo", "x"}).run_id('q').frame(100);
    protocol::append_data(good, 100, protocol::channel::in, "abc");
    protocol::append_credit(good, 100, protocol::channel::out, 1);
    protocol::append_resize(good, 100, 1, 1);
    protocol::append_ping(good, frame_type::ping, "x");
    good += start({"cat"}).open_stdin().timeout(50).frame(101);
    for (int i = 0; i < 400; ++i) {
        std::string bytes = good;
        if (i % 4 == 0) {
            bytes.resize(random() % 300);
            for (auto& one : bytes) {
                one = byte();
            }
        }
        for (unsigned n = random() % 6; n > 0 && !bytes.empty(); --n) {
            bytes[random() % bytes.size()] = byte();
        }
        bytes.resize(random() % (bytes.size() + 1));
        throw_at(agent, i % 3 != 0, bytes);
        BOOST_REQUIRE(agent.alive());
    }
    client host(agent);
    for (const auto& [number, held] : host.held()) {
        host.order(frame_type::stop, number);
        host.order(frame_type::forget, number);
    }
    const auto number = host.begin(start({"echo", "fine"}));
    BOOST_TEST(host.finish(number).out == "fine\n");
}

BOOST_AUTO_TEST_CASE(a_killed_supervisor_is_told_and_its_orphans_are_killed) {
    client host(agent);
    const auto other = host.begin(start::script("echo up; sleep 2; echo done"));
    BOOST_REQUIRE(host.pump([&] { return host.at(other).out == "up\n"; }));
    const auto stream = host.begin(
        start::script("setsid sleep 300 & (trap '' TERM; sleep 301) & echo up; kill -9 $PPID; sleep 302"));
    const auto end = host.finish(stream);
    BOOST_TEST((end.cause == end_cause::lost));
    BOOST_TEST(!end.exit_code);
    BOOST_TEST(!end.exit_signal);
    BOOST_TEST(agent.wait_for_commands(2)); // the other command's
    BOOST_TEST(host.finish(other).out == "up\ndone\n");
    BOOST_TEST(host.run(start({"true"})).exit_code.value() == 0U);
}

BOOST_AUTO_TEST_CASE(a_killed_idle_supervisor_is_replaced) {
    client host(agent);
    for (int i = 0; i < 20; ++i) {
        BOOST_TEST(host.run(start({"true"})).exit_code.value() == 0U);
        for (const auto pid : agent.supervisors()) {
            kill(pid, SIGKILL);
        }
        const auto end = host.run(start({"echo", "x"}));
        if (end.out == "x\n") {
            continue;
        }
        // It had taken the order already, or not yet: both are told.
        const bool unread =
            end.cause == end_cause::never_started && end.failure == protocol::failure_kind::no_process;
        BOOST_TEST((unread || end.cause == end_cause::lost));
        BOOST_TEST(host.run(start({"echo", "y"})).out == "y\n");
    }
}

BOOST_AUTO_TEST_CASE(a_stopped_supervisor_does_not_keep_its_command_alive) {
    client host(agent);
    const auto stream = host.begin(start::script("(while :; do kill -STOP $PPID; done) & trap '' TERM; echo "
                                                 "up; while :; do kill -STOP $PPID; done")
                                       .grace(100));
    BOOST_REQUIRE(host.pump([&] { return host.at(stream).out == "up\n"; }));
    host.order(frame_type::stop, stream);
    BOOST_TEST((host.finish(stream).cause == end_cause::stopped));
    BOOST_TEST(agent.wait_for_commands(0));
}

BOOST_AUTO_TEST_CASE(a_command_can_not_reach_the_agents_descriptors_or_memory) {
    // The agent as an ordinary user, and the command as the same one: nothing but the agent's dumpable flag
    // is between them then. Each word tells whether the command could open it; its own shell is the control.
    const agent_process plain({}, {}, agent_process::owner::nobody);
    client host(plain);
    const auto end = host.run(start::script(
        "for p in $$ $PPID " + std::to_string(plain.pid()) +
        R"(; do for f in environ maps mem; do (: </proc/$p/$f) 2>/dev/null && echo "$f" || echo shut; done)"
        R"(; ls /proc/$p/fd >/dev/null 2>&1 && echo fd || echo shut; done)"));
    const std::string open = "environ\nmaps\nmem\nfd\n";
    const std::string shut = "shut\nshut\nshut\nshut\n";
    BOOST_TEST(end.out == open + shut + shut);
}

BOOST_AUTO_TEST_CASE(thousands_of_orphans_leave_no_zombie) {
    client host(agent);
    const auto end =
        host.run(start::script("i=0; while [ $i -lt 2000 ]; do (sleep 0.05 &); i=$((i+1)); done; echo done"));
    BOOST_TEST(end.out == "done\n");
    BOOST_TEST(agent.wait_for_commands(0));
    BOOST_TEST(agent.wait_until_reaped());
}

BOOST_AUTO_TEST_CASE(a_host_that_does_not_read_is_not_read_either) {
    client host(agent);
    std::string pings;
    for (int i = 0; i < 2000; ++i) {
        protocol::append_ping(pings, frame_type::ping, "12345678");
    }
    std::thread flood([&] {
        for (int i = 0; i < 100; ++i) {
            host.send(pings);
        }
    });
    std::this_thread::sleep_for(300ms);
    BOOST_TEST(host.pump([&] { return host.pongs() == 200'000; }));
    flood.join();
    BOOST_TEST(host.run(start({"true"})).exit_code.value() == 0U);
}

BOOST_AUTO_TEST_CASE(too_many_commands_are_refused_in_words) {
    client host(agent);
    std::string bytes;
    for (std::uint32_t i = 1; i <= 4'100; ++i) {
        // Ended at once, and held.
        bytes += start({})
                     .with([](protocol::frame_writer& one) { one.u16(protocol::tag::operation, 999); })
                     .frame(i);
    }
    host.send(bytes);
    BOOST_REQUIRE(host.pump([&] { return host.at(4'100).ended && host.at(4'096).ended; }));
    BOOST_TEST(host.at(4'096).text == "this agent does not know the file operation");
    BOOST_TEST(host.at(4'097).text == "too many commands at once in this sandbox");
    BOOST_TEST((host.at(4'097).failure == protocol::failure_kind::no_process));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
