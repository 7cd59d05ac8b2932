// What one request and its answer look like.

#include "http/client.hpp"
#include "http/service.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>

using namespace sandboxd;
using test::client;
using test::service;

namespace {
const std::string get_ok = "GET /ok HTTP/1.1\r\nHost: h\r\n\r\n";

std::string get(const std::string& path) {
    return "GET " + path + " HTTP/1.1\r\nHost: h\r\n\r\n";
}
} // namespace

BOOST_AUTO_TEST_CASE(a_request_gets_its_answer_and_the_connection_stays) {
    service one;
    client c(one.port());
    for (int i = 0; i < 3; ++i) {
        c.send(get_ok);
        const auto got = c.expect();
        BOOST_TEST(got.status == 200U);
        BOOST_TEST(got.body == "\"ok\"");
        BOOST_TEST(got.header("content-type") == "application/json");
        BOOST_TEST(got.header("content-length") == "4");
        BOOST_TEST(got.header("date").size() == 29U);
        BOOST_TEST(got.header("x-request-id").size() == 16U);
        BOOST_TEST(got.count("connection") == 0U);
    }
    BOOST_TEST(one.connections() == 1U);
}

BOOST_AUTO_TEST_CASE(the_head_reaches_the_handler_as_sent) {
    service one;
    client c(one.port());
    c.send("PURGE /describe?a=%2F+b&c HTTP/1.1\r\nhOST: [::1]:80\r\nX-SANDBOX-token:  a\xE9z \r\n\r\n");
    BOOST_TEST(c.expect().body == "PURGE /describe?a=%2F+b&c 11 [::1]:80 a\xE9z plain");
}

BOOST_AUTO_TEST_CASE(a_request_id_is_taken_when_it_is_decent) {
    service one;
    client c(one.port());
    c.send("GET /ok HTTP/1.1\r\nHost: h\r\nX-Request-Id: a.B_9-\r\n\r\n");
    BOOST_TEST(c.expect().header("x-request-id") == "a.B_9-");
    c.send("GET /ok HTTP/1.1\r\nHost: h\r\nX-Request-Id: a b\r\n\r\n");
    BOOST_TEST(c.expect().header("x-request-id").size() == 16U);
    c.send("GET /ok HTTP/1.1\r\nHost: h\r\nX-Request-Id: " + std::string(65, 'a') + "\r\n\r\n");
    const auto first = c.expect().header("x-request-id");
    BOOST_TEST(first.size() == 16U);
    c.send(get_ok);
    BOOST_TEST(c.expect().header("x-request-id") != first);
}

BOOST_AUTO_TEST_CASE(the_client_may_ask_to_close) {
    service one;
    client c(one.port());
    c.send("GET /ok HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    BOOST_TEST(c.expect().header("connection") == "close");
    BOOST_TEST(c.at_end());
}

BOOST_AUTO_TEST_CASE(http_1_0_is_closed_unless_it_asks_to_stay) {
    service one;
    client c(one.port());
    c.send("GET /ok HTTP/1.0\r\n\r\n");
    BOOST_TEST(c.expect().header("connection") == "close");
    BOOST_TEST(c.at_end());
    client stays(one.port());
    stays.send("GET /ok HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    BOOST_TEST(stays.expect().header("connection") == "keep-alive");
    stays.send("GET /interim HTTP/1.0\r\n\r\n");
    const auto got = stays.expect();
    BOOST_TEST(got.interim.empty());
    BOOST_TEST(got.body == "\"at last\"");
    client streamed(one.port());
    streamed.send("GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    const auto stream = streamed.expect();
    BOOST_TEST(stream.body == "one,two");
    BOOST_TEST(stream.count("transfer-encoding") == 0U);
    BOOST_TEST(stream.header("connection") == "close");
}

BOOST_AUTO_TEST_CASE(pipelined_requests_are_answered_in_order) {
    service one;
    client c(one.port());
    std::string all;
    for (int i = 0; i < 200; ++i) {
        all += "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\n" + std::to_string(100 + i);
    }
    c.send(all);
    for (int i = 0; i < 200; ++i) {
        BOOST_TEST(c.expect().body == std::to_string(100 + i));
    }
}

namespace {

/// Counts the requests, and those that had come when what else was to be done first had its turn.
struct served {
    std::atomic<int> requests{0};
    std::atomic<int> before_others{0};

    task<void> answer(http::exchange& x) {
        if (++requests == 1) {
            const auto executor = co_await boost::asio::this_coro::executor;
            boost::asio::post(executor, [this] { before_others = requests.load(); });
        }
        co_await x.answer().send(http::detail_reply(200, "ok"));
    }
};

} // namespace

BOOST_AUTO_TEST_CASE(pipelined_requests_let_others_have_their_turn) {
    served all;
    service one({}, [&all](http::exchange& x) { return all.answer(x); });
    client c(one.port());
    std::string requests;
    for (int i = 0; i < 100; ++i) {
        requests += get_ok;
    }
    c.send(requests);
    for (int i = 0; i < 100; ++i) {
        BOOST_TEST(c.expect().status == 200U);
    }
    BOOST_TEST(all.requests == 100);
    BOOST_TEST(all.before_others == 1);
}

BOOST_AUTO_TEST_CASE(a_request_may_come_byte_by_byte) {
    service one;
    client c(one.port());
    const std::string request = "\r\nPOST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
                                "3;name=value\r\nabc\r\n1\r\nd\r\n0\r\nTrailer: x\r\n\r\n" +
                                get_ok;
    for (const char byte : request) {
        c.send(std::string(1, byte));
    }
    BOOST_TEST(c.expect().body == "abcd");
    BOOST_TEST(c.expect().body == "\"ok\"");
}

BOOST_AUTO_TEST_CASE(a_streamed_answer_comes_in_chunks) {
    service one;
    client c(one.port());
    c.send(get("/stream") + get_ok);
    const auto got = c.expect();
    BOOST_TEST(got.header("transfer-encoding") == "chunked");
    BOOST_TEST(got.count("content-length") == 0U);
    BOOST_TEST(got.body == "one,two");
    BOOST_TEST(c.expect().body == "\"ok\"");
}

BOOST_AUTO_TEST_CASE(a_streamed_answer_that_fails_is_cut) {
    service one;
    client c(one.port());
    c.send(get("/cut"));
    const auto all = c.read_to_end();
    BOOST_REQUIRE(all);
    BOOST_TEST(all->ends_with("\r\n\r\n4\r\nhalf\r\n"));
}

BOOST_AUTO_TEST_CASE(interim_answers_come_before_the_final_one) {
    service one;
    client c(one.port());
    c.send(get("/interim"));
    const auto got = c.expect();
    BOOST_TEST(got.interim == (std::vector<unsigned>{102, 102}), boost::test_tools::per_element());
    BOOST_TEST(got.body == "\"at last\"");
}

BOOST_AUTO_TEST_CASE(an_exception_or_a_missing_answer_is_a_500_in_plain_text) {
    service one;
    client c(one.port());
    for (const char* path : {"/throw", "/none"}) {
        c.send(get(path));
        const auto got = c.expect();
        BOOST_TEST(got.status == 500U);
        BOOST_TEST(got.header("content-type") == "text/plain; charset=utf-8");
        BOOST_TEST(got.body == "Internal Server Error");
    }
    c.send(get_ok);
    BOOST_TEST(c.expect().status == 200U);
}

BOOST_AUTO_TEST_CASE(an_answer_without_content_has_no_length) {
    service one;
    client c(one.port());
    c.send(get("/empty") + get_ok);
    const auto got = c.expect();
    BOOST_TEST(got.status == 204U);
    BOOST_TEST(got.count("content-length") == 0U);
    BOOST_TEST(c.expect().body == "\"ok\"");
}

BOOST_AUTO_TEST_CASE(the_answer_to_head_has_no_body) {
    service one;
    client c(one.port());
    c.send(
        "HEAD /ok HTTP/1.1\r\nHost: h\r\n\r\nHEAD /stream HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    const auto all = c.read_to_end();
    BOOST_REQUIRE(all);
    BOOST_TEST(all->find("Content-Length: 4\r\n") != std::string::npos);
    BOOST_TEST(all->find("ok") == std::string::npos);
    BOOST_TEST(all->find("one") == std::string::npos);
    BOOST_TEST(all->ends_with("\r\n\r\n"));
}

BOOST_AUTO_TEST_CASE(errors_are_json_with_a_detail) {
    service one;
    client c(one.port());
    c.send(get("/refuse"));
    const auto got = c.expect();
    BOOST_TEST(got.status == 401U);
    BOOST_TEST(got.header("content-type") == "application/json");
    BOOST_TEST(got.body == "{\"detail\":\"no \\\"token\\\"\"}");
}
