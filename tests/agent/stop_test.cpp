#include "agent_client.hpp"

#include <boost/test/unit_test.hpp>

#include <csignal>
#include <thread>

namespace {

using namespace sandboxd::agent::test;
using namespace std::chrono_literals;
namespace protocol = sandboxd::protocol;
using protocol::end_cause;
using protocol::frame_type;

/// Everything a command can do to get away: a session of its own, a double fork, deafness.
const std::string stubborn =
    "trap '' TERM\n"
    "sleep 301 &\n"
    "setsid sleep 302 &\n"
    "(setsid sh -c 'trap \"\" TERM; (sleep 303 & sleep 304 &) ; while :; do sleep 305; done' &)\n"
    "echo up; while :; do sleep 306; done";

struct fixture {
    agent_process agent;
    client host{agent};

    std::uint32_t begin_and_wait(const start& command) {
        const auto stream = host.begin(command);
        BOOST_REQUIRE(host.pump([&] { return host.at(stream).out.find("up\n") != std::string::npos; }));
        return stream;
    }
};

BOOST_FIXTURE_TEST_SUITE(agent_stops, fixture)

BOOST_AUTO_TEST_CASE(a_timeout_ends_the_whole_tree) {
    outcome end;
    for (const std::uint64_t limit : {700U, 5'000U, 30'000U}) { // the first is short for a busy machine
        end = host.run(start::script(stubborn).timeout(limit).grace(300));
        if (end.out == "up\n") {
            break;
        }
    }
    BOOST_TEST((end.cause == end_cause::timed_out));
    BOOST_TEST(end.out == "up\n");
    BOOST_TEST(end.exit_signal.value() == 9U);
    BOOST_TEST(end.duration_us >= 1'000'000U);
    BOOST_TEST(agent.commands().empty()); // at the end already
}

BOOST_AUTO_TEST_CASE(a_stop_ends_the_whole_tree) {
    const auto stream = begin_and_wait(start::script(stubborn).grace(200));
    BOOST_REQUIRE(agent.wait_for_commands(8));
    host.order(frame_type::stop, stream);
    const auto end = host.finish(stream);
    BOOST_TEST((end.cause == end_cause::stopped));
    BOOST_TEST(end.exit_signal.value() == 9U);
    BOOST_TEST(agent.commands().empty());
}

BOOST_AUTO_TEST_CASE(a_command_that_hears_term_ends_at_once) {
    const auto stream =
        begin_and_wait(start::script("trap 'echo bye; exit 3' TERM; echo up; while :; do sleep 0.05; done"));
    host.order(frame_type::stop, stream);
    host.order(frame_type::stop, stream); // harmless
    const auto end = host.finish(stream);
    BOOST_TEST((end.cause == end_cause::stopped));
    BOOST_TEST(end.exit_code.value() == 3U);
    BOOST_TEST(end.out.find("bye\n") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(stopped_processes_end_too) {
    const auto stream =
        begin_and_wait(start::script("sleep 300 & kill -STOP $!; echo up; kill -STOP $$; echo never"));
    host.order(frame_type::stop, stream);
    BOOST_TEST((host.finish(stream).cause == end_cause::stopped));
    BOOST_TEST(agent.commands().empty());
}

BOOST_AUTO_TEST_CASE(a_stop_right_behind_the_start_is_not_lost) {
    for (int i = 0; i < 50; ++i) {
        const auto stream = host.begin(start({"sleep", "300"}).grace(100));
        host.order(frame_type::stop, stream);
        BOOST_REQUIRE((host.finish(stream).cause == end_cause::stopped));
    }
    BOOST_TEST(agent.wait_for_commands(0));
}

BOOST_AUTO_TEST_CASE(a_stop_of_one_leaves_the_others_alone) {
    const auto other = begin_and_wait(start::script("echo up; sleep 300"));
    host.run(start::script("sleep 0.2 & echo hi"));
    const auto stopped = begin_and_wait(start::script(stubborn).grace(100));
    host.order(frame_type::stop, stopped);
    host.finish(stopped);
    BOOST_TEST(!host.at(other).ended);
    BOOST_TEST(agent.wait_for_commands(2)); // the shell of the other and its sleep
    std::this_thread::sleep_for(300ms);
    BOOST_TEST(agent.commands().size() == 2U); // and they stay
    host.order(frame_type::stop, other);
    host.finish(other);
}

BOOST_AUTO_TEST_CASE(many_processes_that_fork_are_caught) {
    const auto end = host.run(start::script("trap '' TERM; f() { while :; do (sleep 0.01 &) ; done; }\n"
                                            "f & f & f & f & echo up; f")
                                  .timeout(500)
                                  .grace(200));
    BOOST_TEST((end.cause == end_cause::timed_out));
    BOOST_TEST(agent.commands().empty());
}

BOOST_AUTO_TEST_CASE(zero_timeout_stops_at_once) {
    const auto end = host.run(start({"sleep", "300"}).timeout(0).grace(60'000));
    BOOST_TEST((end.cause == end_cause::timed_out));
    BOOST_TEST(end.exit_signal.value() == 15U);
}

BOOST_AUTO_TEST_CASE(a_busy_loop_is_stopped_in_time) {
    const auto end = host.run(start::script("while :; do :; done").timeout(300).grace(60'000));
    BOOST_TEST((end.cause == end_cause::timed_out));
    BOOST_TEST(end.exit_signal.value() == 15U); // not by the KILL that comes later
}

BOOST_AUTO_TEST_CASE(shutdown_leaves_nothing) {
    host.begin(start::script(stubborn));
    BOOST_REQUIRE(host.pump([&] { return host.at(1).out == "up\n"; }));
    host.order(frame_type::shutdown, 0);
    BOOST_TEST(!host.pump([&] { return false; }));
    BOOST_TEST(host.closed());
    BOOST_TEST((host.at(1).cause == end_cause::stopped));
}

BOOST_AUTO_TEST_CASE(other_signals_do_not_end_the_agent) {
    for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGUSR1, SIGUSR2, SIGALRM, SIGTSTP}) {
        kill(agent.pid(), number);
    }
    std::this_thread::sleep_for(50ms);
    BOOST_TEST(host.run(start({"true"})).exit_code.value() == 0U);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
