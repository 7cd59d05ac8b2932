// What is refused, and how (hard-cases B8).

#include "http/check.hpp"
#include "http/client.hpp"
#include "http/service.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <ostream>

using namespace sandboxd;
using test::client;
using test::service;

namespace {

struct refusal {
    std::string name;
    std::string request;
    unsigned status;
};

std::ostream& operator<<(std::ostream& out, const refusal& one) {
    return out << one.name;
}

/// A literal with NULs in it.
template <std::size_t N>
std::string bytes(const char (&literal)[N]) {
    return {literal, N - 1};
}

std::string head(const std::string& fields) {
    return "POST /echo HTTP/1.1\r\nHost: h\r\n" + fields + "\r\n";
}

std::string target(const std::string& text) {
    return "GET " + text + " HTTP/1.1\r\nHost: h\r\n\r\n";
}

std::string chunked(const std::string& body) {
    return head("Transfer-Encoding: chunked\r\n") + body;
}

const std::vector<refusal> refusals{
    {"length and coding", head("Content-Length: 0\r\nTransfer-Encoding: chunked\r\n") + "0\r\n\r\n", 400},
    {"coding and length", head("Transfer-Encoding: chunked\r\nContent-Length: 0\r\n") + "0\r\n\r\n", 400},
    {"two lengths", head("Content-Length: 3\r\nContent-Length: 4\r\n") + "abcd", 400},
    {"the same length twice", head("Content-Length: 3\r\nContent-Length: 3\r\n") + "abc", 400},
    {"a list of lengths", head("Content-Length: 3, 3\r\n") + "abc", 400},
    {"a signed length", head("Content-Length: +3\r\n") + "abc", 400},
    {"a negative length", head("Content-Length: -3\r\n") + "abc", 400},
    {"an empty length", head("Content-Length: \r\n"), 400},
    {"a length in hex", head("Content-Length: 0x3\r\n") + "abc", 400},
    {"a length beyond 64 bits", head("Content-Length: 18446744073709551616\r\n"), 400},
    {"an unknown coding", head("Transfer-Encoding: xchunked\r\n") + "3\r\nabc\r\n0\r\n\r\n", 501},
    {"identity", head("Transfer-Encoding: identity\r\n"), 501},
    {"gzip before chunked", head("Transfer-Encoding: gzip, chunked\r\n") + "0\r\n\r\n", 501},
    {"chunked before gzip", head("Transfer-Encoding: chunked, gzip\r\n") + "0\r\n\r\n", 501},
    {"chunked twice", head("Transfer-Encoding: chunked, chunked\r\n") + "0\r\n\r\n", 400},
    {"two codings", head("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n") + "0\r\n\r\n", 400},
    {"a coding in 1.0", "POST /echo HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
    {"no host", "GET /ok HTTP/1.1\r\n\r\n", 400},
    {"two hosts", "GET /ok HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400},
    {"a host with a slash", "GET /ok HTTP/1.1\r\nHost: a/b\r\n\r\n", 400},
    {"a folded field", "GET /ok HTTP/1.1\r\nHost: h\r\nX: a\r\n b\r\n\r\n", 400},
    {"a bare line feed", "GET /ok HTTP/1.1\nHost: h\n\n\r\n\r\n", 400},
    {"a bare line feed in a field", "GET /ok HTTP/1.1\r\nHost: h\r\nX: a\nY: b\r\n\r\n", 400},
    {"a bare carriage return", "GET /ok HTTP/1.1\r\nHost: h\r\nX: a\rb\r\n\r\n", 400},
    {"a blank before the colon", "GET /ok HTTP/1.1\r\nHost : h\r\n\r\n", 400},
    {"a NUL in a field", bytes("GET /ok HTTP/1.1\r\nHost: h\r\nX: a\0b\r\n\r\n"), 400},
    {"a control character in a field", "GET /ok HTTP/1.1\r\nHost: h\r\nX: a\x01\r\n\r\n", 400},
    {"DEL in a field", "GET /ok HTTP/1.1\r\nHost: h\r\nX: a\x7F\r\n\r\n", 400},
    {"a field without a colon", "GET /ok HTTP/1.1\r\nHost: h\r\nnothing\r\n\r\n", 400},
    {"a field without a name", "GET /ok HTTP/1.1\r\nHost: h\r\n: x\r\n\r\n", 400},
    {"two blanks", "GET  /ok HTTP/1.1\r\nHost: h\r\n\r\n", 400},
    {"an absolute target", target("http://h/ok"), 400},
    {"an authority", "CONNECT h:80 HTTP/1.1\r\nHost: h\r\n\r\n", 400},
    {"an asterisk", target("*"), 400},
    {"bytes beyond ASCII in the target", target("/\xC0\xAF"), 400},
    {"a control character in the target", target("/\x01"), 400},
    {"a fragment", target("/ok#part"), 400},
    {"HTTP/2.0", "GET /ok HTTP/2.0\r\nHost: h\r\n\r\n", 400},
    {"the HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400},
    {"HTTP/0.9", "GET /ok\r\n\r\n", 400},
    {"TLS", bytes("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"), 400},
    {"an expectation", head("Expect: the-worst\r\nContent-Length: 3\r\n"), 417},
    {"a bare line feed in a chunk extension", chunked("1;a\n\r\nx\r\n0\r\n\r\n"), 400},
    {"a bare line feed after a chunk size", chunked("5\nhello\r\n0\r\n\r\n"), 400},
    {"a chunk size of 65 bits", chunked("10000000000000000\r\n\r\n"), 400},
    {"a signed chunk size", chunked("+1\r\nx\r\n0\r\n\r\n"), 400},
    {"a chunk size in decimal notation of another kind", chunked("0x1\r\nx\r\n0\r\n\r\n"), 400},
    {"a chunk longer than it says", chunked("1\r\nxy\r\n0\r\n\r\n"), 400},
    {"a chunk extension without end", chunked("1;" + std::string(40'000, 'a')), 400},
    {"a trailer without end", chunked("0\r\nX: " + std::string(40'000, 'a')), 400},
};

} // namespace

BOOST_DATA_TEST_CASE(a_faulty_request_is_refused_and_the_connection_closed,
                     boost::unit_test::data::make(refusals)) {
    service one;
    client c(one.port());
    c.send(sample.request);
    // What the fault might smuggle in.
    c.try_send("GET /describe HTTP/1.1\r\nHost: h\r\n\r\n");
    const auto got = c.expect();
    BOOST_TEST(got.status == sample.status);
    BOOST_TEST(got.header("content-type") == "application/json");
    BOOST_TEST(got.body.starts_with("{\"detail\":\""));
    BOOST_TEST(got.header("connection") == "close");
    c.half_close();
    BOOST_TEST(c.at_end());
}

BOOST_AUTO_TEST_CASE(a_head_of_16_kib_passes_and_a_longer_one_is_431) {
    service one;
    const std::string start = "GET /ok HTTP/1.1\r\nHost: h\r\nX: ";
    client fits(one.port());
    fits.send(start + std::string(16U * 1024 - start.size() - 4, 'a') + "\r\n\r\n");
    BOOST_TEST(fits.expect().status == 200U);
    client exceeds(one.port());
    exceeds.send(start + std::string(16U * 1024 - start.size() - 3, 'a') + "\r\n\r\n");
    const auto got = exceeds.expect();
    BOOST_TEST(got.status == 431U);
    BOOST_TEST(got.header("connection") == "close");
    client endless(one.port());
    endless.try_send(start + std::string(1U << 20U, 'a'));
    BOOST_TEST(endless.expect().status == 431U);
    client target(one.port());
    target.try_send("GET /" + std::string(20'000, 'a') + " HTTP/1.1\r\nHost: h\r\n\r\n");
    BOOST_TEST(target.expect().status == 431U);
}

BOOST_AUTO_TEST_CASE(the_asterisk_of_options_reaches_the_handler) {
    service one;
    client c(one.port());
    c.send("OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n");
    BOOST_TEST(c.expect().status == 404U);
}

BOOST_AUTO_TEST_CASE(a_trailer_does_not_pass_for_a_field) {
    service one;
    client c(one.port());
    c.send("POST /describe HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-Sandbox-Token: "
           "t\r\n\r\n");
    BOOST_TEST(c.expect().body == "POST /describe 11 h - plain");
    c.send("GET /describe HTTP/1.1\r\nHost: h\r\n\r\n");
    BOOST_TEST(c.expect().body == "GET /describe 11 h - plain");
}

BOOST_AUTO_TEST_CASE(names_compare_without_regard_to_ascii_case_only) {
    BOOST_TEST(http::same_name("Content-LENGTH", "content-length"));
    BOOST_TEST(!http::same_name("content-length", "content-lengt"));
    BOOST_TEST(!http::same_name("a@", "a`"));
    BOOST_TEST(!http::same_name("\xC4", "\xE4"));
}

BOOST_AUTO_TEST_CASE(a_request_id_holds_little) {
    BOOST_TEST(http::acceptable_request_id("aZ09._-"));
    BOOST_TEST(http::acceptable_request_id(std::string(64, 'a')));
    BOOST_TEST(!http::acceptable_request_id(""));
    BOOST_TEST(!http::acceptable_request_id(std::string(65, 'a')));
    BOOST_TEST(!http::acceptable_request_id("a/b"));
    BOOST_TEST(!http::acceptable_request_id("\xE4"));
}
