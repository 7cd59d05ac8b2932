// Pieces without sockets: the watchdog, what heads look like; and the server over memory.

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

// The first piece ends behind the request's line, in a field, at a CR, in a chunk's line, in the next head.
BOOST_AUTO_TEST_CASE(requests_may_be_cut_anywhere) {
    const std::string first =
        "POST /x HTTP/1.1\r\nHost: h\r\nX-Long: and so on\r\nTransfer-Encoding: chunked\r\n\r\n"
        "3;name=value\r\nabc\r\n1\r\nd\r\n0\r\nTrailer: x\r\n\r\n";
    const std::string said = "\r\n" + first +
                             "\r\nPOST /y HTTP/1.1\r\nHost: h\r\nConnection: close\r\n"
                             "Content-Length: 5\r\n\r\n12345";
    for (std::size_t piece = 1; piece <= said.size(); ++piece) {
        const auto heard = over_memory(&say_ok, said, 65536, piece);
        BOOST_TEST(heard.starts_with("HTTP/1.1 200 OK\r\n"), "pieces of " << piece);
        BOOST_TEST(heard.find("\r\n\r\n4HTTP/1.1 200 OK\r\n") != std::string::npos, "pieces of " << piece);
        BOOST_TEST(heard.ends_with("\r\n\r\n5"), "pieces of " << piece);
    }
}

BOOST_AUTO_TEST_CASE(a_second_answer_is_not_sent) {
    const auto heard = over_memory(&answer_twice, "GET /x HTTP/1.1\r\nHost: h\r\n\r\n", 65536, 65536);
    BOOST_TEST(heard.ends_with("\r\n\r\n1"));
}
