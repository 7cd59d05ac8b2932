#include "agent_client.hpp"
#include "flag.hpp"

#include <boost/test/unit_test.hpp>

#include <thread>

namespace {

using namespace sandboxd::agent::test;
using namespace std::chrono_literals;
namespace protocol = sandboxd::protocol;
using protocol::end_cause;
using protocol::failure_kind;
using protocol::frame_type;

struct fixture {
    agent_process agent;
};

std::string lines(int last) {
    std::string out;
    for (int i = 1; i <= last; ++i) {
        out += std::to_string(i) + "\n";
    }
    return out;
}

BOOST_FIXTURE_TEST_SUITE(agent_channel, fixture)

BOOST_AUTO_TEST_CASE(a_cut_channel_loses_no_byte) {
    const auto expected = lines(200'000);
    std::string got;
    std::uint32_t stream = 0;
    {
        client host(agent);
        stream = host.begin(start({"seq", "200000"}));
        BOOST_REQUIRE(host.pump([&] { return host.at(stream).out.size() > 10'000; }));
        got = host.at(stream).out;
    }
    for (const std::size_t step : {1U, 7'777U, 100'001U, 262'143U}) {
        client host(agent);
        BOOST_REQUIRE(host.held().contains(stream));
        const auto& held = host.held().at(stream);
        BOOST_TEST(!held.ended);
        BOOST_TEST(held.out_offset <= got.size());
        host.resume(stream, got.size());
        BOOST_REQUIRE(host.pump([&] { return host.at(stream).out.size() >= step; }));
        got += host.at(stream).out;
        std::string credit; // absolute, and more than this channel saw
        protocol::append_credit(credit, stream, protocol::channel::out, got.size());
        host.automatic_credit = false;
        host.send(credit);
    }
    client host(agent);
    host.automatic_credit = false;
    host.resume(stream, got.size());
    BOOST_REQUIRE(host.pump([&] {
        host.credit(stream, got.size() + host.at(stream).out.size());
        return host.at(stream).ended;
    }));
    got += host.finish(stream).out;
    BOOST_TEST((got == expected));
    client last(agent);
    BOOST_TEST(last.held().empty());
}

BOOST_AUTO_TEST_CASE(an_end_is_kept_until_it_is_forgotten) {
    std::uint32_t stream = 0;
    {
        client host(agent);
        host.automatic_credit = false;
        stream = host.begin(
            start::script("echo out; echo err >&2; exit 9").mode(protocol::start_mode::separate).run_id('r'));
        BOOST_REQUIRE(host.pump([&] { return host.at(stream).ended; }));
    }
    for (int i = 0; i < 3; ++i) {
        client host(agent);
        const auto& held = host.held().at(stream);
        BOOST_TEST(held.ended);
        BOOST_TEST(held.run_id == std::string(16, 'r'));
        host.resume(stream, 4, i == 0 ? 0 : 4);
        BOOST_REQUIRE(host.pump([&] { return host.at(stream).ended; }));
        BOOST_TEST(host.at(stream).out.empty());
        BOOST_TEST(host.at(stream).exit_code.value() == 9U);
        BOOST_TEST(host.at(stream).out_total == 4U);
        BOOST_TEST(host.at(stream).err == (i == 0 ? "err\n" : "")); // acknowledged the first time
        if (i < 2) {
            continue;
        }
        host.order(frame_type::forget, stream);
    }
    client host(agent);
    BOOST_TEST(host.held().empty());
}

BOOST_AUTO_TEST_CASE(nothing_is_sent_before_the_resume) {
    const flag cut;
    {
        client host(agent);
        host.begin(start::script("echo now; " + cut.wait() + "; echo later"));
        BOOST_REQUIRE(host.pump([&] { return !host.at(1).out.empty(); }));
    }
    client host(agent);
    cut.raise();
    BOOST_TEST(!host.pump([&] { return !host.at(1).out.empty() || host.at(1).ended; }, 400ms));
    BOOST_TEST(host.run(start({"echo", "x"})).out == "x\n");
    host.resume(1, 4);
    BOOST_TEST(host.finish(1).out == "later\n");
}

BOOST_AUTO_TEST_CASE(a_command_without_a_channel_keeps_its_deadline) {
    {
        client host(agent);
        host.begin(start::script("echo up; sleep 300").timeout(2000));
        BOOST_REQUIRE(host.pump([&] { return host.at(1).pid.has_value(); }));
    }
    BOOST_TEST(agent.wait_for_commands(0));
    client host(agent);
    host.resume(1, host.held().at(1).out_offset);
    BOOST_TEST((host.finish(1).cause == end_cause::timed_out));
}

BOOST_AUTO_TEST_CASE(output_without_a_channel_is_held_back_not_lost) {
    {
        client host(agent);
        host.begin(start({"seq", "300000"}));
        BOOST_REQUIRE(host.pump([&] { return host.at(1).pid.has_value(); }));
    }
    BOOST_TEST(agent.wait_for_commands(1));
    std::this_thread::sleep_for(200ms);
    BOOST_TEST(agent.commands().size() == 1U);
    client host(agent);
    const auto from = host.held().at(1).out_offset;
    host.automatic_credit = false;
    host.resume(1, from);
    BOOST_REQUIRE(host.pump([&] {
        host.credit(1, from + host.at(1).out.size());
        return host.at(1).ended;
    }));
    BOOST_TEST((host.at(1).out == lines(300'000).substr(from)));
}

BOOST_AUTO_TEST_CASE(a_newer_channel_replaces_the_older) {
    client older(agent);
    client newer(agent);
    BOOST_TEST(!older.pump([] { return false; }));
    BOOST_TEST(older.closed());
    BOOST_TEST(newer.run(start({"echo", "x"})).out == "x\n");
}

BOOST_AUTO_TEST_CASE(a_connection_that_says_nothing_disturbs_nobody) {
    client host(agent);
    const int silent = agent.connect();
    BOOST_TEST(host.run(start({"echo", "x"})).out == "x\n");
    close(silent);
    BOOST_TEST(host.run(start({"echo", "y"})).out == "y\n");
}

BOOST_AUTO_TEST_CASE(forgetting_a_running_command_drops_its_output_only) {
    client host(agent);
    const auto stream =
        host.begin(start::script("echo up; yes | head -c 5000000; sleep 0.2; exit 6").run_id('f'));
    BOOST_REQUIRE(host.pump([&] { return !host.at(stream).out.empty(); }));
    host.order(frame_type::forget, stream);
    BOOST_REQUIRE(host.pump([&] { return host.at(stream).ended; }));
    BOOST_TEST(host.at(stream).exit_code.value() == 6U);
    client next(agent); // its end was sent: no second forget is needed
    BOOST_TEST(next.held().empty());
}

BOOST_AUTO_TEST_CASE(a_forgotten_command_can_still_be_stopped_and_is_still_told) {
    {
        client host(agent);
        host.begin(start::script("echo up; sleep 300").run_id('f'));
        BOOST_REQUIRE(host.pump([&] { return !host.at(1).out.empty(); }));
        host.order(frame_type::forget, 1);
    }
    client host(agent);
    BOOST_TEST(host.held().at(1).run_id == std::string(16, 'f'));
    host.order(frame_type::forget, 1);
    host.order(frame_type::stop, 1);
    BOOST_REQUIRE(host.pump([&] { return host.at(1).ended; }));
    BOOST_TEST((host.at(1).cause == end_cause::stopped));
    BOOST_TEST(agent.commands().empty());
}

BOOST_AUTO_TEST_CASE(a_run_id_runs_once) {
    client host(agent);
    const auto first = host.begin(start({"sleep", "300"}).run_id('a'));
    const auto again = host.run(start({"echo", "x"}).run_id('a'));
    BOOST_TEST((again.cause == end_cause::never_started));
    BOOST_TEST((again.failure == failure_kind::duplicate));
    host.order(frame_type::stop, first);
    host.finish(first);
    BOOST_TEST((host.run(start({"echo", "x"}).run_id('a')).failure == failure_kind::duplicate));
    BOOST_TEST(host.run(start({"echo", "x"}).run_id('b')).out == "x\n");
}

BOOST_AUTO_TEST_CASE(stdin_goes_on_where_it_was_cut) {
    {
        client host(agent);
        host.begin(start({"cat"}).open_stdin());
        host.write(1, "one ");
        BOOST_REQUIRE(host.pump([&] { return host.at(1).out == "one "; }));
    }
    client host(agent);
    BOOST_TEST(host.held().at(1).in_offset == 4U);
    host.resume(1, 4);
    host.write(1, "two");
    host.end_input(1);
    host.end_input(1);
    BOOST_TEST(host.finish(1).out == "two");
}

BOOST_AUTO_TEST_CASE(ping_is_answered) {
    client host(agent);
    std::string out;
    protocol::append_ping(out, frame_type::ping, "12345678");
    protocol::append_ping(out, frame_type::ping, "");
    host.send(out);
    BOOST_TEST(host.pump([&] { return host.pongs() == 2; }));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
