// Pieces without sockets: the budget, the watchdog, what heads look like; and the server over memory.

#include "core/deadline.hpp"
#include "core/spawn.hpp"
#include "http/budget.hpp"
#include "http/format.hpp"
#include "http/server.hpp"
#include "http/watchdog.hpp"
#include "net/connect.hpp"
#include "support/run.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/test/unit_test.hpp>

using namespace sandboxd;
using namespace std::chrono_literals;
namespace asio = boost::asio;

namespace {

task<void> keep_lease(http::memory_budget& budget, std::uint64_t bytes, std::chrono::milliseconds limit,
                      std::vector<std::string>& order, std::string name,
                      http::memory_budget::order place = http::memory_budget::order::in_turn) {
    auto lease = co_await budget.acquire(bytes, limit, place);
    order.push_back(name + (lease ? " got it" : " did not"));
    if (lease) {
        co_await core::sleep_for(1ms);
    }
}

task<void> keep_present(http::memory_budget& budget, std::uint64_t bytes, std::chrono::milliseconds limit,
                        std::vector<std::string>& order, std::string name) {
    const auto lease = co_await budget.acquire_for_present(bytes, limit, http::memory_budget::order::in_turn);
    order.push_back(name + (lease ? " got it" : " did not"));
}

} // namespace

BOOST_AUTO_TEST_CASE(the_budget_serves_in_order_and_takes_back) {
    asio::io_context context;
    core::gate inside;
    http::memory_budget budget(100);
    std::vector<std::string> order;
    auto held = budget.try_acquire(60);
    BOOST_REQUIRE(held);
    const auto start = [&](std::uint64_t bytes, std::chrono::milliseconds limit, std::string name) {
        core::spawn(context.get_executor(), "test", inside,
                    keep_lease(budget, bytes, limit, order, std::move(name)));
        context.restart();
        context.poll();
    };
    start(101, 10s, "too large");
    start(50, 10s, "first");
    start(10, 10s, "second"); // would fit, but is behind the first
    BOOST_TEST(!budget.try_acquire(1));
    BOOST_TEST(order == (std::vector<std::string>{"too large did not"}), boost::test_tools::per_element());
    held->release();
    context.restart();
    context.run_for(60s);
    BOOST_TEST(order == (std::vector<std::string>{"too large did not", "first got it", "second got it"}),
               boost::test_tools::per_element());
    BOOST_TEST(budget.used() == 0U);
    BOOST_TEST(inside.inside() == 0U);
}

BOOST_AUTO_TEST_CASE(a_wait_for_memory_that_is_given_up_lets_others_pass) {
    asio::io_context context;
    core::gate inside;
    http::memory_budget budget(100);
    std::vector<std::string> order;
    auto held = budget.try_acquire(60);
    auto signal = std::make_shared<asio::cancellation_signal>();
    core::spawn(context.get_executor(), "test", inside, keep_lease(budget, 80, 10s, order, "cancelled"),
                signal);
    core::spawn(context.get_executor(), "test", inside, keep_lease(budget, 70, 5ms, order, "late"));
    core::spawn(context.get_executor(), "test", inside, keep_lease(budget, 40, 10s, order, "small"));
    context.poll();
    BOOST_TEST(order.empty());
    signal->emit(asio::cancellation_type::terminal);
    context.restart();
    context.run_for(60s);
    BOOST_TEST(order == (std::vector<std::string>{"late did not", "small got it"}),
               boost::test_tools::per_element());
    held->release();
    BOOST_TEST(budget.used() == 0U);
    BOOST_TEST(inside.inside() == 0U);
}

BOOST_AUTO_TEST_CASE(who_holds_memory_and_needs_more_never_waits_behind_those_who_wait_for_it) {
    asio::io_context context;
    core::gate inside;
    http::memory_budget budget(100);
    std::vector<std::string> order;
    auto held = budget.try_acquire(60);
    const auto start = [&](std::uint64_t bytes, std::string name, http::memory_budget::order place) {
        core::spawn(context.get_executor(), "test", inside,
                    keep_lease(budget, bytes, 10s, order, std::move(name), place));
        context.restart();
        context.poll_one();
    };
    using enum http::memory_budget::order;
    start(60, "new", in_turn);
    start(20, "fits", ahead); // at once, and keeps it for a moment
    start(50, "first of all", ahead);
    BOOST_TEST(order == (std::vector<std::string>{"fits got it"}), boost::test_tools::per_element());
    held->release();
    context.restart();
    context.run_for(60s);
    BOOST_TEST(order == (std::vector<std::string>{"fits got it", "first of all got it", "new got it"}),
               boost::test_tools::per_element());
    BOOST_TEST(budget.used() == 0U);
}

BOOST_AUTO_TEST_CASE(answers_that_are_there_already_wait_up_to_a_quarter_of_the_budget) {
    asio::io_context context;
    core::gate inside;
    http::memory_budget budget(100);
    std::vector<std::string> order;
    auto held = budget.try_acquire(90);
    const auto start = [&](std::uint64_t bytes, std::string name) {
        core::spawn(context.get_executor(), "test", inside,
                    keep_present(budget, bytes, 10s, order, std::move(name)));
        context.restart();
        context.poll();
    };
    start(60, "one may be larger");
    start(1, "behind it");
    BOOST_TEST(order == (std::vector<std::string>{"behind it did not"}), boost::test_tools::per_element());
    order.clear();
    held->release();
    context.restart();
    context.run_for(60s);
    BOOST_TEST(order == (std::vector<std::string>{"one may be larger got it"}),
               boost::test_tools::per_element());
    order.clear();
    held = budget.try_acquire(90);
    start(15, "first");
    start(10, "second");
    start(1, "one too many");
    BOOST_TEST(order == (std::vector<std::string>{"one too many did not"}), boost::test_tools::per_element());
    held->release();
    context.restart();
    context.run_for(60s);
    start(100, "all of it");
    context.restart();
    context.run_for(60s);
    BOOST_TEST(order == (std::vector<std::string>{"one too many did not", "first got it", "second got it",
                                                  "all of it got it"}),
               boost::test_tools::per_element());
    BOOST_TEST(budget.used() == 0U);
    BOOST_TEST(inside.inside() == 0U);
}

BOOST_AUTO_TEST_CASE(small_requests_pass_those_that_wait_for_much) {
    asio::io_context context;
    core::gate inside;
    http::memory_budget budget(10 * 1024);
    std::vector<std::string> order;
    auto held = budget.try_acquire(10 * 1024 - 15);
    const auto start = [&](std::uint64_t bytes, std::string name) {
        core::spawn(context.get_executor(), "test", inside,
                    keep_lease(budget, bytes, 10s, order, std::move(name)));
        context.restart();
        context.poll();
    };
    start(16, "large");
    start(11, "not so small"); // would fit, but is behind the first
    start(10, "small");
    BOOST_TEST(order == (std::vector<std::string>{"small got it"}), boost::test_tools::per_element());
    held->release();
    context.restart();
    context.run_for(60s);
    BOOST_TEST(order == (std::vector<std::string>{"small got it", "large got it", "not so small got it"}),
               boost::test_tools::per_element());
    BOOST_TEST(budget.used() == 0U);
}

BOOST_AUTO_TEST_CASE(leases_add_up) {
    http::memory_budget budget(100);
    auto first = budget.try_acquire(30);
    auto second = budget.try_acquire(20);
    first->add(std::move(*second));
    BOOST_TEST(first->bytes() == 50U);
    BOOST_TEST(budget.used() == 50U);
    http::memory_budget::lease empty;
    empty.add(std::move(*first));
    BOOST_TEST(empty.bytes() == 50U);
    empty = {};
    BOOST_TEST(budget.used() == 0U);
}

BOOST_AUTO_TEST_CASE(the_watchdog_follows_its_deadline) {
    asio::io_context context;
    int barked = 0;
    auto dog = std::make_shared<http::watchdog>(context.get_executor(), [&] { ++barked; });
    const auto now = std::chrono::steady_clock::now();
    dog->until(now + 1h);
    dog->until(now + 5ms); // earlier than what is armed
    context.run_for(60s);
    BOOST_TEST(barked == 1);
    dog->until(std::chrono::steady_clock::now() + 2ms);
    dog->until(std::chrono::steady_clock::now() + 40ms); // later: the timer fires early once
    context.restart();
    context.run_for(60s);
    BOOST_TEST(barked == 2);
    BOOST_TEST((std::chrono::steady_clock::now() - now >= 40ms));
    dog->until(std::chrono::steady_clock::now() + 2ms);
    dog->never();
    context.restart();
    context.run_for(60s);
    BOOST_TEST(barked == 2);
    dog->until(std::chrono::steady_clock::now() + 2ms);
    dog->stop();
    context.restart();
    context.run_for(60s);
    BOOST_TEST(barked == 2);
}

BOOST_AUTO_TEST_CASE(a_head_can_not_be_split) {
    std::string out;
    const http::header_list fields{{"X-A", "b\r\nX-Injected: c"}};
    http::format_head(out, 200, fields, http::answer_framing::length, 5, "close", "id1");
    const auto date = out.find("Date: ");
    BOOST_REQUIRE(date != std::string::npos);
    out.erase(date + 6, 29);
    BOOST_TEST(out == "HTTP/1.1 200 OK\r\nDate: \r\nX-A: b  X-Injected: c\r\nContent-Length: 5\r\n"
                      "Connection: close\r\nX-Request-Id: id1\r\n\r\n");
}

BOOST_AUTO_TEST_CASE(dates_are_those_of_rfc_9110) {
    BOOST_TEST(http::format_date(784111777) == "Sun, 06 Nov 1994 08:49:37 GMT");
    BOOST_TEST(http::format_date(0) == "Thu, 01 Jan 1970 00:00:00 GMT");
    BOOST_TEST(http::date_now().size() == 29U);
}

BOOST_AUTO_TEST_CASE(a_detail_is_json_whatever_the_text) {
    const auto made = http::detail_reply(400, "a\"b\\\n\xFF\xC3\xA9");
    BOOST_TEST(made.body == "{\"detail\":\"a\\\"b\\\\\\u000a\xEF\xBF\xBD\xC3\xA9\"}");
}

namespace {

task<void> say_ok(http::exchange& x) {
    auto body = co_await x.body().read_all(1U << 20U);
    co_await x.answer().send(http::json_reply(200, body ? std::to_string(body->size()) : "\"fault\""));
}

task<void> answer_twice(http::exchange& x) {
    co_await x.answer().send(http::json_reply(200, "1"));
    co_await x.answer().send(http::json_reply(200, "2"));
}

task<std::string> talk(http::server& server, net::stream_ptr mine, std::string said) {
    std::array<asio::const_buffer, 1> out{asio::buffer(said)};
    std::size_t sent = 0;
    std::string heard;
    // Both at once: little fits between the two.
    std::vector<char> piece(100);
    while (sent < said.size()) {
        out[0] = asio::buffer(said) + sent;
        const auto [failed, bytes] =
            co_await mine->async_write_some(out, asio::as_tuple(asio::use_awaitable));
        if (failed) {
            break;
        }
        sent += bytes;
    }
    mine->shutdown_send();
    for (;;) {
        const auto [failed, bytes] =
            co_await mine->async_read_some(asio::buffer(piece), asio::as_tuple(asio::use_awaitable));
        if (failed) {
            break;
        }
        heard.append(piece.data(), bytes);
    }
    co_await server.stop(0ms);
    co_return heard;
}

std::string over_memory(http::handler handler, std::string said, std::size_t capacity, std::size_t piece) {
    asio::io_context context;
    http::memory_budget budget(1U << 30U);
    auto server = http::create_server(std::move(handler), budget, {});
    auto [mine, theirs] = net::memory_pair(context.get_executor(), capacity, piece);
    server->serve(std::move(theirs), "memory");
    return test::get(context, talk(*server, std::move(mine), std::move(said)));
}

} // namespace

BOOST_AUTO_TEST_CASE(a_connection_works_over_any_stream_and_any_split) {
    const std::string said =
        "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\nConnection: close\r\n\r\n" +
        std::string(1000, 'b');
    for (const std::size_t piece : {1UL, 2UL, 7UL, 65536UL}) {
        const auto heard = over_memory(&say_ok, said, 300, piece);
        BOOST_TEST(heard.starts_with("HTTP/1.1 200 OK\r\n"));
        BOOST_TEST(heard.ends_with("\r\n\r\n1000"));
    }
}

BOOST_AUTO_TEST_CASE(a_second_answer_is_not_sent) {
    const auto heard = over_memory(&answer_twice, "GET /x HTTP/1.1\r\nHost: h\r\n\r\n", 65536, 65536);
    BOOST_TEST(heard.ends_with("\r\n\r\n1"));
}
