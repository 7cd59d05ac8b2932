#include "agent_client.hpp"
#include "flag.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <thread>

namespace {

using namespace sandboxd::agent::test;
using namespace std::chrono_literals;
namespace protocol = sandboxd::protocol;
using protocol::end_cause;
using protocol::start_mode;

struct fixture {
    agent_process agent;
    client host{agent};
};

auto keep(std::uint64_t bytes) {
    return [bytes](protocol::frame_writer& frame) { frame.u64(protocol::tag::keep_bytes, bytes); };
}

auto limit(std::uint64_t bytes) {
    return [bytes](protocol::frame_writer& frame) { frame.u64(protocol::tag::limit_bytes, bytes); };
}

/// The numbers from 1 to `last`, a line each, as seq prints them.
std::string lines(int last) {
    std::string out;
    for (int i = 1; i <= last; ++i) {
        out += std::to_string(i) + "\n";
    }
    return out;
}

BOOST_FIXTURE_TEST_SUITE(agent_output, fixture)

BOOST_AUTO_TEST_CASE(large_output_arrives_whole) {
    const auto end = host.run(start({"seq", "3000000"}));
    BOOST_TEST((end.out == lines(3'000'000)));
    BOOST_TEST(end.out_total == end.out.size());
    BOOST_TEST(end.dropped == 0U);
}

BOOST_AUTO_TEST_CASE(a_slow_reader_holds_the_command_back_and_loses_nothing) {
    host.automatic_credit = false;
    const auto stream = host.begin(start({"head", "-c", "50000000", "/dev/zero"}));
    BOOST_TEST(host.pump([&] { return host.at(stream).out.size() >= protocol::window; }));
    BOOST_TEST(!host.pump([&] { return host.at(stream).out.size() > protocol::window; }, 300ms));
    BOOST_TEST(host.at(stream).out.size() == protocol::window);
    BOOST_TEST(agent.commands().size() == 1U);
    host.automatic_credit = true;
    host.credit(stream, protocol::window);
    const auto end = host.finish(stream);
    BOOST_TEST((end.out == std::string(50'000'000, '\0')));
    BOOST_TEST(end.exit_code.value() == 0U);
}

BOOST_AUTO_TEST_CASE(what_is_in_the_pipe_at_the_end_waits_for_a_slow_reader) {
    host.automatic_credit = false;
    const auto stream = host.begin(start({"head", "-c", "300000", "/dev/zero"}));
    BOOST_TEST(host.pump([&] { return host.at(stream).out.size() >= protocol::window; }));
    BOOST_TEST(!host.pump([&] { return host.at(stream).ended; }, 400ms)); // longer than the grace
    BOOST_TEST(host.at(stream).out.size() == protocol::window);
    host.automatic_credit = true;
    host.credit(stream, protocol::window);
    BOOST_TEST(host.finish(stream).out.size() == 300'000U);
}

BOOST_AUTO_TEST_CASE(keep_bytes_keeps_the_beginning_of_each_channel) {
    const auto exact = host.run(start({"head", "-c", "1000", "/dev/zero"}).with(keep(1000)));
    BOOST_TEST(exact.out.size() == 1000U);
    BOOST_TEST(exact.dropped == 0U);
    const auto more = host.run(start({"head", "-c", "1001", "/dev/zero"}).with(keep(1000)));
    BOOST_TEST(more.out.size() == 1000U);
    BOOST_TEST(more.dropped == 1U);
    BOOST_TEST((more.cause == end_cause::exited));
    const auto much =
        host.run(start::script("seq 1000000; seq 1000000 >&2").mode(start_mode::separate).with(keep(65'536)));
    BOOST_TEST((much.out == lines(20'000).substr(0, 65'536)));
    BOOST_TEST(much.err == much.out);
    BOOST_TEST(much.dropped == 2 * (lines(1'000'000).size() - 65'536));
    BOOST_TEST(host.run(start({"echo", "x"}).with(keep(0))).dropped == 2U);
}

BOOST_AUTO_TEST_CASE(limit_bytes_is_exact_and_counts_both_channels) {
    const auto exact = host.run(start({"head", "-c", "100000", "/dev/zero"}).with(limit(100'000)));
    BOOST_TEST((exact.cause == end_cause::exited));
    BOOST_TEST(exact.out.size() == 100'000U);
    const auto more = host.run(start::script("head -c 100001 /dev/zero; sleep 50").with(limit(100'000)));
    BOOST_TEST((more.cause == end_cause::output_limit));
    BOOST_TEST(more.out.size() == 100'000U);
    BOOST_TEST(more.duration_us < 10'000'000U);
    const flag full;
    const auto stream =
        host.begin(start::script("printf 12345; printf 67890 >&2; " + full.wait() + "; printf x; sleep 50")
                       .mode(start_mode::separate)
                       .with(limit(10)));
    BOOST_TEST(host.pump([&] { return host.at(stream).out.size() + host.at(stream).err.size() == 10U; }));
    full.raise();
    const auto both = host.finish(stream);
    BOOST_TEST((both.cause == end_cause::output_limit));
    BOOST_TEST(both.out == "12345");
    BOOST_TEST(both.err == "67890");
    BOOST_TEST(both.dropped == 1U);
    BOOST_TEST(agent.wait_for_commands(0));
}

BOOST_AUTO_TEST_CASE(the_limit_counts_also_when_the_command_has_ended_by_itself) {
    // All of it fits the pipe, so the command has often ended before the agent reads the first byte.
    for (int i = 0; i < 100; ++i) {
        const auto end = host.run(start({"head", "-c", "1001", "/dev/zero"}).with(limit(1000)));
        BOOST_TEST((end.cause == end_cause::output_limit));
    }
}

BOOST_AUTO_TEST_CASE(an_endless_printer_is_cut_at_the_limit) {
    const auto end = host.run(start({"yes"}).with(limit(10'485'760)).with(keep(65'536)));
    BOOST_TEST((end.cause == end_cause::output_limit));
    BOOST_TEST(end.out.size() == 65'536U);
    BOOST_TEST(end.dropped > 10'485'760U - 65'536U);
}

BOOST_AUTO_TEST_CASE(a_gigabyte_beside_true) {
    host.discard = true;
    const auto large = host.begin(start({"head", "-c", "1073741824", "/dev/zero"}));
    int rounds = 0;
    while (!host.at(large).ended) {
        const auto end = host.run(start({"true"}));
        BOOST_REQUIRE(end.exit_code.value() == 0U);
        ++rounds;
    }
    BOOST_TEST(rounds > 2); // one that is starved takes a single round, as long as the gigabyte
    BOOST_TEST(host.finish(large).out_received == 1'073'741'824U);
}

BOOST_AUTO_TEST_CASE(a_child_in_the_background_does_not_hold_the_end) {
    for (const auto* text : {"sleep 300 & echo hi", "setsid sleep 300 & echo hi", "nohup sleep 300 & echo hi",
                             "(sleep 300 &) ; echo hi", "tail -f /dev/null & echo hi"}) {
        const auto end = host.run(start::script(text)); // which waits for less than they sleep
        BOOST_TEST(end.out.find("hi\n") != std::string::npos, text);
        BOOST_TEST(end.exit_code.value() == 0U);
    }
    BOOST_TEST(agent.commands().size() == 5U); // at a normal end nobody is killed
    BOOST_TEST(host.run(start({"true"})).exit_code.value() == 0U);
}

BOOST_AUTO_TEST_CASE(a_server_in_the_background_lives_on_though_it_prints) {
    const auto end = host.run(start::script("(while :; do echo line; sleep 0.02; done) & echo up"));
    BOOST_TEST(end.out.find("up\n") != std::string::npos);
    std::this_thread::sleep_for(500ms);
    const auto living = agent.commands();
    BOOST_TEST((living.size() == 1U || living.size() == 2U)); // the loop, and most often its sleep
    const auto large = host.run(start::script("(yes | head -c 3000000; exec sleep 300) & exit 4"));
    BOOST_TEST(large.exit_code.value() == 4U);
    std::this_thread::sleep_for(500ms);
    BOOST_TEST(agent.commands().size() >= 2U);
}

BOOST_AUTO_TEST_CASE(output_after_a_long_silence_is_there) {
    BOOST_TEST(host.run(start::script("sleep 1.5; echo late")).out == "late\n");
    for (int i = 0; i < 500; ++i) {
        BOOST_REQUIRE(host.run(start({"echo", "running"})).out == "running\n");
    }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
