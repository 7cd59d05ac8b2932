// What happens to sandboxes of the docker backend: ends, lost daemons, lost streams, on a daemon in memory.

#include "docker_fixture.hpp"

#include "sandbox/docker/local.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/test/unit_test.hpp>

using namespace sandboxd;
using namespace std::chrono_literals;
namespace asio = boost::asio;

namespace {

struct opened_fixture : test::docker_fixture {
    std::shared_ptr<sandbox> box = open(spec()).value();
    std::string container = daemon->containers.begin()->first;
    int deaths = 0;
    opened_fixture() {
        box->on_death([this] { ++deaths; });
    }

    result<net::stream_ptr> connect() { return get(host_of(*box).connect(context.get_executor())); }
};

task<std::size_t> read_some(net::stream& from) {
    std::array<char, 16> part{};
    const auto [failed, count] =
        co_await from.async_read_some(asio::buffer(part), asio::as_tuple(asio::use_awaitable));
    co_return failed ? 0 : count;
}

task<void> say(net::stream& to) {
    co_await asio::async_write(to, asio::buffer("hello", 5), asio::as_tuple(asio::use_awaitable));
}

} // namespace

BOOST_FIXTURE_TEST_SUITE(docker_life, opened_fixture)

BOOST_AUTO_TEST_CASE(an_end_is_told_by_the_events) {
    daemon->tell("oom", container);
    BOOST_TEST(*host_of(*box).oom_kills() == 1U);
    BOOST_TEST(box->alive());
    daemon->end(container);
    BOOST_TEST(!box->alive());
    BOOST_TEST(deaths == 1);
    BOOST_TEST(static_cast<int>(connect().error().code) == static_cast<int>(errc::gone));
    daemon->tell("die", "another-container");
    BOOST_TEST(deaths == 1);
}

BOOST_AUTO_TEST_CASE(an_end_that_was_missed_is_found_when_the_events_come_again) {
    daemon->end(container, false);
    BOOST_TEST(box->alive());
    daemon->reconnect();
    until([&] { return deaths == 1; });
    BOOST_TEST(!box->alive());
}

BOOST_AUTO_TEST_CASE(what_still_runs_when_the_events_come_again_lives) {
    daemon->reconnect();
    settle(50ms);
    BOOST_TEST(box->alive());
    BOOST_TEST(deaths == 0);
}

BOOST_AUTO_TEST_CASE(a_daemon_that_is_away_is_told_as_degraded_until_it_is_back) {
    until([&] { return daemon->count("ping") != 0; });
    BOOST_TEST(!builder->degraded().has_value());
    daemon->away = docker::no_answer(errc::unavailable, "cannot reach the docker daemon: connection refused");
    until([&] { return builder->degraded().has_value(); });
    BOOST_TEST(*builder->degraded() == "cannot reach the docker daemon: connection refused");
    BOOST_TEST(box->alive());
    const auto failed = open(spec());
    BOOST_TEST(static_cast<int>(failed.error().code) == static_cast<int>(errc::start_failed));
    BOOST_TEST(failed.error().message == "cannot reach the docker daemon: connection refused");
    daemon->away.reset();
    until([&] { return !builder->degraded().has_value(); });
    BOOST_TEST(open(spec()).has_value());
}

BOOST_AUTO_TEST_CASE(a_stream_is_an_attach_as_long_as_attaches_work) {
    for (int turn = 1; turn <= 2; ++turn) {
        auto stream = connect();
        BOOST_TEST_REQUIRE(stream.has_value());
        test::run(context, say(*daemon->agents.back()));
        BOOST_TEST(get(read_some(**stream)) == 5U);
        BOOST_TEST(daemon->count("attach") == static_cast<std::size_t>(turn));
    }
    BOOST_TEST(daemon->execs.empty());
}

BOOST_AUTO_TEST_CASE(after_an_attach_that_stayed_silent_the_bridge_is_taken) {
    auto silent = connect();
    BOOST_TEST_REQUIRE(silent.has_value());
    (*silent)->close();
    auto bridged = connect();
    BOOST_TEST_REQUIRE(bridged.has_value());
    BOOST_TEST_REQUIRE(daemon->execs.size() == 1U);
    const std::vector<std::string> argv{"/.sandboxd/bin/sandboxd-agent", "bridge", box->handle()};
    BOOST_TEST(daemon->execs[0].argv == argv, boost::test_tools::per_element());
    BOOST_TEST(daemon->execs[0].attach_stdin);
    auto again = connect(); // the attach has its chance again
    BOOST_TEST(again.has_value());
    BOOST_TEST(daemon->count("attach") == 2U);
}

BOOST_AUTO_TEST_CASE(a_refused_attach_finds_the_end_that_nobody_told) {
    daemon->end(container, false);
    BOOST_TEST(static_cast<int>(connect().error().code) == static_cast<int>(errc::gone));
    BOOST_TEST(deaths == 1);
}

BOOST_AUTO_TEST_CASE(a_refused_attach_of_a_lost_daemon_is_no_end) {
    daemon->away = docker::no_answer(errc::unavailable, "cannot reach the docker daemon");
    const auto failed = connect();
    BOOST_TEST(static_cast<int>(failed.error().code) == static_cast<int>(errc::io));
    BOOST_TEST(failed.error().message == "cannot reach the docker daemon");
    BOOST_TEST(box->alive());
}

BOOST_AUTO_TEST_CASE(usage_comes_from_the_daemon_and_its_rate_from_two_samples) {
    const auto first = get(host_of(*box).usage());
    BOOST_TEST(*first->memory_bytes == 4096U);
    BOOST_TEST(*first->pids == 2U);
    BOOST_TEST(!first->memory_limit_bytes.has_value());
    BOOST_TEST(!first->cpu_percent.has_value());
    const auto second = get(host_of(*box).usage());
    BOOST_TEST(*second->cpu_percent == 20.0);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_CASE(the_memory_cgroup_of_a_process) {
    using sandboxes::docker_backend::memory_cgroup;
    BOOST_TEST(*memory_cgroup("12:cpu,cpuacct:/a\n5:memory:/docker/abc\n0::/x\n") == "/docker/abc");
    BOOST_TEST(*memory_cgroup("0::/system.slice/docker-abc.scope\n") == "/system.slice/docker-abc.scope");
    BOOST_TEST(*memory_cgroup("3:devices,memory:/with:colon") == "/with:colon");
    BOOST_TEST(!memory_cgroup("").has_value());
    BOOST_TEST(!memory_cgroup("7:pids:/docker/abc\nnonsense\n").has_value());
}
