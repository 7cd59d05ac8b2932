// Time, ends of connections, clients that leave, stopping.

#include "http/client.hpp"
#include "http/service.hpp"

#include <boost/test/unit_test.hpp>

#include <filesystem>
#include <memory>
#include <thread>
#include <utility>

using namespace sandboxd;
using namespace std::chrono_literals;
using test::client;
using test::service;

namespace {

const std::string get_ok = "GET /ok HTTP/1.1\r\nHost: h\r\n\r\n";

std::string get(const std::string& path) {
    return "GET " + path + " HTTP/1.1\r\nHost: h\r\n\r\n";
}

/// The answer to a request that reached the server within its short deadlines, and the connection: on a busy
/// machine not every try does.
std::pair<std::unique_ptr<client>, test::answer> served_in_time(service& one, const std::string& request) {
    for (int tries = 0; tries < 100; ++tries) {
        auto c = std::make_unique<client>(one.port());
        if (c->try_send(request)) {
            if (auto got = c->read()) {
                return {std::move(c), std::move(*got)};
            }
        }
    }
    BOOST_FAIL("the server closes every connection without an answer");
    return {};
}

std::size_t open_descriptors() {
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        count += entry.path().empty() ? 0 : 1;
    }
    return count;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_dribbled_head_is_408_after_its_deadline_whatever_comes_meanwhile) {
    service::options small;
    small.bounds.head_time = 200ms;
    service one(small);
    client c(one.port());
    c.send("GET /ok HTTP/1.1\r\nHost: h\r\n");
    // Each line comes long before the deadline, which the first has set for all of them.
    BOOST_TEST(test::eventually([&] {
        const bool broken = !c.try_send("X: y\r\n");
        std::this_thread::sleep_for(20ms);
        return broken || one.connections() == 0U;
    }));
    client silent(one.port());
    silent.send("GET /ok HT");
    const auto got = silent.expect();
    BOOST_TEST(got.status == 408U);
    BOOST_TEST(got.header("connection") == "close");
    BOOST_TEST(silent.at_end());
}

BOOST_AUTO_TEST_CASE(an_idle_connection_is_closed_without_a_word) {
    service::options small;
    small.bounds.idle_time = 100ms;
    service one(small);
    client fresh(one.port());
    BOOST_TEST(fresh.at_end());
    const auto used = served_in_time(one, get_ok);
    BOOST_TEST(used.first->at_end());
}

BOOST_AUTO_TEST_CASE(a_handler_may_take_longer_than_any_deadline) {
    service::options small;
    small.bounds.idle_time = 50ms;
    small.bounds.head_time = 50ms;
    small.bounds.stall_time = 50ms;
    service one(small);
    BOOST_TEST(served_in_time(one, get("/nap")).second.body == "\"rested\"");
}

BOOST_AUTO_TEST_CASE(a_half_closed_client_gets_its_answers) {
    service one;
    client c(one.port());
    c.send(get("/nap") + get_ok);
    c.half_close();
    BOOST_TEST(c.expect().body == "\"rested\"");
    BOOST_TEST(c.expect().body == "\"ok\"");
    BOOST_TEST(c.at_end());
}

BOOST_AUTO_TEST_CASE(a_reset_is_noticed_while_the_handler_runs) {
    service one;
    client watched(one.port());
    watched.send(get("/until_gone"));
    client probed(one.port());
    probed.send(get("/probe"));
    BOOST_REQUIRE(test::eventually([&] { return one.waiting == 2; }));
    std::this_thread::sleep_for(30ms);
    BOOST_TEST(one.found_gone == 0);
    BOOST_TEST(one.probed_gone == 0);
    watched.reset();
    probed.reset();
    BOOST_TEST(test::eventually([&] { return one.found_gone == 1 && one.probed_gone == 1; }));
    BOOST_TEST(test::eventually([&] { return one.connections() == 0U; }));
}

BOOST_AUTO_TEST_CASE(a_half_closed_client_is_not_gone) {
    service one;
    client c(one.port());
    c.send(get("/until_gone"));
    BOOST_REQUIRE(test::eventually([&] { return one.waiting == 1; }));
    c.half_close();
    std::this_thread::sleep_for(100ms);
    BOOST_TEST(one.found_gone == 0);
    c.reset();
    BOOST_TEST(test::eventually([&] { return one.found_gone == 1; }));
}

BOOST_AUTO_TEST_CASE(a_client_that_closes_both_ways_is_found_out_by_a_probe) {
    service one;
    {
        client c(one.port());
        c.send(get("/probe"));
        BOOST_REQUIRE(test::eventually([&] { return one.waiting == 1; }));
    } // close(): a FIN first, a reset for what is sent after it
    BOOST_TEST(test::eventually([&] { return one.probed_gone == 1; }));
}

BOOST_AUTO_TEST_CASE(a_reader_that_stalls_loses_its_connection) {
    service::options small;
    small.bounds.stall_time = 3s; // for the test to see the connection
    service one(small);
    client c(one.port());
    c.send(get("/big"));
    BOOST_TEST(test::eventually([&] { return one.connections() == 1U; }));
    BOOST_TEST(test::eventually([&] { return one.connections() == 0U; }));
}

BOOST_AUTO_TEST_CASE(a_large_answer_arrives_whole) {
    service one;
    client c(one.port());
    c.send(get("/big") + get_ok);
    const auto got = c.expect();
    BOOST_TEST(got.body.size() == 32U << 20U);
    BOOST_TEST(c.expect().body == "\"ok\"");
}

BOOST_AUTO_TEST_CASE(stopping_closes_idle_connections_and_lets_busy_ones_finish) {
    service one;
    client idle(one.port());
    idle.send(get_ok);
    BOOST_TEST(idle.expect().status == 200U);
    client silent(one.port());
    client busy(one.port());
    busy.send(get("/hold") + get_ok);
    BOOST_REQUIRE(test::eventually([&] { return one.waiting == 1 && one.connections() == 3U; }));
    one.begin_stop(60s);
    BOOST_TEST(idle.at_end());
    BOOST_TEST(silent.at_end());
    one.released = true;
    const auto got = busy.expect();
    BOOST_TEST(got.body == "\"rested\"");
    BOOST_TEST(got.header("connection") == "close");
    BOOST_TEST(!busy.read().has_value());
    one.stop(60s);
    BOOST_TEST(one.cancelled == 0);
}

BOOST_AUTO_TEST_CASE(what_is_busy_after_the_grace_is_cancelled) {
    service one;
    client waits(one.port());
    waits.send(get("/wait"));
    client uploads(one.port());
    uploads.send("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\nabc");
    client dribbles(one.port());
    dribbles.send("GET /ok HT");
    client stalls(one.port());
    stalls.send(get("/big"));
    client probes(one.port());
    probes.send(get("/probe"));
    client discarded(one.port());
    discarded.send("POST /refuse HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\nabc");
    BOOST_TEST(discarded.expect().status == 401U);
    BOOST_REQUIRE(test::eventually([&] { return one.waiting == 2 && one.connections() == 6U; }));
    std::this_thread::sleep_for(50ms);
    one.stop(50ms);
    BOOST_TEST(one.cancelled == 1);
    BOOST_TEST(waits.at_end());
}

BOOST_AUTO_TEST_CASE(stopping_at_once_ends_everything) {
    service one;
    client waits(one.port());
    waits.send(get("/wait"));
    BOOST_REQUIRE(test::eventually([&] { return one.waiting == 1; }));
    one.stop(0ms);
    BOOST_TEST(one.cancelled == 1);
}

BOOST_AUTO_TEST_CASE(more_connections_than_allowed_wait_for_their_turn) {
    service::options small;
    small.bounds.max_connections = 2;
    service one(small);
    std::optional<client> first(one.port());
    client second(one.port());
    first->send(get_ok);
    second.send(get_ok);
    BOOST_TEST(first->expect().status == 200U);
    BOOST_TEST(second.expect().status == 200U);
    client third(one.port());
    third.send(get_ok);
    std::this_thread::sleep_for(100ms);
    BOOST_TEST(one.connections() == 2U);
    first.reset();
    BOOST_TEST(third.expect().status == 200U);
}

BOOST_AUTO_TEST_CASE(five_hundred_connections_at_once_and_no_descriptor_left) {
    const auto before = open_descriptors();
    {
        service one;
        std::vector<std::unique_ptr<client>> all;
        for (int i = 0; i < 500; ++i) {
            all.push_back(std::make_unique<client>(one.port()));
            // Half of them dribble.
            all.back()->send(i % 2 == 0 ? get("/nap") : "GET /");
        }
        client other(one.port());
        other.send(get_ok);
        BOOST_TEST(other.expect().status == 200U);
        for (int i = 0; i < 500; ++i) {
            if (i % 2 == 0) {
                BOOST_REQUIRE_EQUAL(all[static_cast<std::size_t>(i)]->expect().body, "\"rested\"");
            } else {
                all[static_cast<std::size_t>(i)]->send("ok HTTP/1.1\r\nHost: h\r\n\r\n");
                BOOST_REQUIRE_EQUAL(all[static_cast<std::size_t>(i)]->expect().body, "\"ok\"");
            }
        }
        BOOST_TEST(one.connections() == 501U);
    }
    BOOST_TEST(open_descriptors() == before);
}
