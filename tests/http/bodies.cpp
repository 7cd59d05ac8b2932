// How bodies come in, are refused, discarded and bounded.

#include "http/client.hpp"
#include "http/service.hpp"

#include <boost/test/unit_test.hpp>

#include <thread>

using namespace sandboxd;
using namespace std::chrono_literals;
using test::client;
using test::service;

namespace {

std::string post(const std::string& path, const std::string& fields) {
    return "POST " + path + " HTTP/1.1\r\nHost: h\r\n" + fields + "\r\n";
}

std::string sized(const std::string& path, const std::string& body) {
    return post(path, "Content-Length: " + std::to_string(body.size()) + "\r\n") + body;
}

std::string in_chunks(const std::string& body, std::size_t piece) {
    std::string text;
    for (std::size_t at = 0; at < body.size(); at += piece) {
        const auto part = body.substr(at, piece);
        char size[20];
        std::snprintf(size, sizeof size, "%zx\r\n", part.size());
        text += size + part + "\r\n";
    }
    return text + "0\r\n\r\n";
}

std::string pattern(std::size_t size) {
    std::string text(size, ' ');
    for (std::size_t i = 0; i < size; ++i) {
        text[i] = static_cast<char>('a' + i * i % 23);
    }
    return text;
}

const std::string get_ok = "GET /ok HTTP/1.1\r\nHost: h\r\n\r\n";
constexpr std::size_t mib = 1U << 20U;

} // namespace

BOOST_AUTO_TEST_CASE(a_body_comes_back_whole_at_every_size) {
    service one;
    client c(one.port());
    for (const std::size_t size : {0UL, 1UL, 16'383UL, 16'384UL, 16'385UL, 262'144UL, 262'145UL, mib}) {
        const std::string body = pattern(size);
        c.send(sized("/echo", body));
        auto got = c.expect();
        BOOST_TEST(got.status == 200U);
        BOOST_TEST((got.body == body));
        for (const std::size_t piece : {7UL, 5000UL, 100'000UL}) {
            if (size / piece < 10'000) {
                c.send(post("/echo", "Transfer-Encoding: Chunked\r\n") + in_chunks(body, piece));
                got = c.expect();
                BOOST_TEST(got.status == 200U);
                BOOST_TEST((got.body == body));
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(a_body_may_be_read_in_pieces) {
    service one;
    client c(one.port());
    c.send(sized("/count", pattern(3 * mib)));
    BOOST_TEST(c.expect().body == std::to_string(3 * mib));
    c.send(post("/count", "Transfer-Encoding: chunked\r\n") + in_chunks(pattern(3 * mib), 70'000));
    BOOST_TEST(c.expect().body == std::to_string(3 * mib));
}

BOOST_AUTO_TEST_CASE(one_byte_too_many_is_413_and_the_connection_stays) {
    service one;
    client c(one.port());
    c.send(sized("/echo", pattern(mib + 1)));
    auto got = c.expect();
    BOOST_TEST(got.status == 413U);
    BOOST_TEST(got.body == "{\"detail\":\"The request body is too large\"}");
    BOOST_TEST(got.count("connection") == 0U);
    c.send(post("/echo", "Transfer-Encoding: chunked\r\n") + in_chunks(pattern(mib + 1), 4096));
    BOOST_TEST(c.expect().status == 413U);
    c.send(get_ok);
    BOOST_TEST(c.expect().body == "\"ok\"");
}

BOOST_AUTO_TEST_CASE(a_refused_body_of_40_mib_is_discarded_and_the_next_request_answered) {
    service one;
    client c(one.port());
    // The client sends all of it before it reads, like the contract's clients (N13.1).
    c.send(sized("/refuse", std::string(40 * mib, 'x')));
    const auto got = c.expect();
    BOOST_TEST(got.status == 401U);
    BOOST_TEST(got.count("connection") == 0U);
    c.send(post("/refuse", "Transfer-Encoding: chunked\r\n") + in_chunks(std::string(20 * mib, 'x'), mib));
    BOOST_TEST(c.expect().status == 401U);
    c.send(get_ok);
    BOOST_TEST(c.expect().body == "\"ok\"");
    BOOST_TEST(one.budget_used() == 0U);
}

BOOST_AUTO_TEST_CASE(a_refused_body_beyond_the_cap_gets_a_readable_answer_and_the_end) {
    service::options small;
    small.bounds.drain_bytes = mib;
    service one(small);
    client counted(one.port());
    const std::string body(8 * mib, 'x');
    counted.try_send(sized("/refuse", body));
    auto got = counted.expect();
    BOOST_TEST(got.status == 401U);
    BOOST_TEST(got.header("connection") == "close");
    BOOST_TEST(counted.at_end());
    client chunked(one.port());
    chunked.try_send(post("/refuse", "Transfer-Encoding: chunked\r\n") + in_chunks(body, mib));
    BOOST_TEST(chunked.expect().status == 401U);
    BOOST_TEST(chunked.at_end());
}

BOOST_AUTO_TEST_CASE(a_slow_refused_body_is_given_up) {
    service::options small;
    small.bounds.drain_time = 100ms;
    service one(small);
    client c(one.port());
    c.send(post("/refuse", "Content-Length: 1000\r\n"));
    BOOST_TEST(c.expect().status == 401U);
    BOOST_TEST(c.at_end());
}

BOOST_AUTO_TEST_CASE(continue_is_said_only_when_the_body_is_wanted) {
    service one;
    const std::string fields = "Content-Length: 3\r\nExpect: 100-Continue\r\n";
    client wanted(one.port());
    wanted.send(post("/echo", fields));
    BOOST_TEST(wanted.interim().value() == 100U);
    wanted.send("abc");
    auto got = wanted.expect();
    BOOST_TEST(got.interim.empty());
    BOOST_TEST(got.body == "abc");
    wanted.send(get_ok);
    BOOST_TEST(wanted.expect().status == 200U);
    for (const auto& [path, status] : {std::pair("/refuse", 401U), std::pair("/nowhere", 404U)}) {
        client refused(one.port());
        refused.send(post(path, fields));
        got = refused.expect();
        BOOST_TEST(got.interim.empty());
        BOOST_TEST(got.status == status);
        BOOST_TEST(got.header("connection") == "close");
        BOOST_TEST(refused.at_end());
    }
    client large(one.port());
    large.send(post("/echo", "Content-Length: 1048577\r\nExpect: 100-continue\r\n"));
    got = large.expect();
    BOOST_TEST(got.interim.empty());
    BOOST_TEST(got.status == 413U);
    client old(one.port());
    old.send("POST /echo HTTP/1.0\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\nabc");
    got = old.expect();
    BOOST_TEST(got.interim.empty());
    BOOST_TEST(got.body == "abc");
}

BOOST_AUTO_TEST_CASE(a_body_that_comes_too_slowly_is_408) {
    service::options small;
    small.bounds.stall_time = 150ms;
    service one(small);
    client c(one.port());
    c.send(post("/echo", "Content-Length: 10\r\n") + "abc");
    const auto got = c.expect();
    BOOST_TEST(got.status == 408U);
    BOOST_TEST(got.header("connection") == "close");
    BOOST_TEST(c.at_end());
}

BOOST_AUTO_TEST_CASE(a_body_that_dribbles_is_408_in_bounded_time) {
    service::options small;
    small.bounds.stall_time = 300ms;
    service one(small);
    client c(one.port());
    c.send(post("/echo", "Content-Length: 100000\r\n"));
    BOOST_TEST(test::eventually([&] {
        const bool broken = !c.try_send("x");
        std::this_thread::sleep_for(20ms);
        return broken || one.connections() == 0U;
    }));
}

BOOST_AUTO_TEST_CASE(half_a_body_and_the_end_is_400) {
    service one;
    client counted(one.port());
    counted.send(post("/echo", "Content-Length: 10\r\n") + "abc");
    counted.half_close();
    BOOST_TEST(counted.expect().status == 400U);
    client chunked(one.port());
    chunked.send(post("/echo", "Transfer-Encoding: chunked\r\n") + "5\r\nab");
    chunked.half_close();
    BOOST_TEST(chunked.expect().status == 400U);
}

BOOST_AUTO_TEST_CASE(bodies_beyond_the_memory_budget_wait_then_are_503) {
    service::options small;
    small.budget = mib;
    small.bounds.memory_wait = 200ms;
    service one(small);
    client holder(one.port());
    holder.send(post("/echo", "Content-Length: 900000\r\n"));
    BOOST_REQUIRE(test::eventually([&] { return one.budget_used() == 900'000U; }));
    client late(one.port());
    late.send(sized("/echo", pattern(500'000)));
    const auto got = late.expect();
    BOOST_TEST(got.status == 503U);
    BOOST_TEST(got.count("connection") == 0U);
    client small_one(one.port());
    small_one.send(sized("/echo", "abc"));
    BOOST_TEST(small_one.expect().body == "abc");
    client chunks(one.port());
    chunks.send(post("/echo", "Transfer-Encoding: chunked\r\n") + in_chunks(pattern(500'000), 10'000));
    BOOST_TEST(chunks.expect().status == 503U);
    holder.send(pattern(900'000));
    BOOST_TEST((holder.expect().body == pattern(900'000)));
    BOOST_REQUIRE(test::eventually([&] { return one.budget_used() == 0U; }));
    late.send(sized("/echo", pattern(500'000)));
    BOOST_TEST(late.expect().status == 200U);
    BOOST_REQUIRE(test::eventually([&] { return one.budget_used() == 0U; }));
}

BOOST_AUTO_TEST_CASE(a_body_that_waits_for_memory_gets_it_when_it_is_free) {
    service::options small;
    small.budget = mib;
    service one(small);
    client holder(one.port());
    holder.send(post("/echo", "Content-Length: 900000\r\n"));
    BOOST_REQUIRE(test::eventually([&] { return one.budget_used() == 900'000U; }));
    client late(one.port());
    late.send(sized("/echo", pattern(500'000)));
    std::this_thread::sleep_for(50ms);
    holder.send(pattern(900'000));
    BOOST_TEST(late.expect().status == 200U);
    BOOST_TEST(holder.expect().status == 200U);
}
