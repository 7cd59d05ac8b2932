#include "router/table.hpp"
#include "router/answer.hpp"
#include "router/query.hpp"

#include <boost/test/unit_test.hpp>

#include <array>
#include <stdexcept>

using namespace sandboxd;
using router::match;
using outcome = match::outcome;

namespace {

constexpr std::array<router::endpoint, 9> rows{{{"GET", "/"},
                                                {"GET", "/healthz"},
                                                {"POST", "/sessions"},
                                                {"GET", "/sessions"},
                                                {"GET", "/sessions/{session_id}"},
                                                {"DELETE", "/sessions/{session_id}"},
                                                {"GET", "/sessions/{session_id}/events"},
                                                {"POST", "/sessions/{session_id}/runs/{run_id}/stop"},
                                                {"GET", "/sessions/{session_id}/{other}"}}};
const router::table routes{rows};

match find(std::string_view method, std::string_view target) {
    return routes.find(method, target);
}

http::request_head asked(std::string_view host, bool secure) {
    http::request_head head;
    head.host = host;
    head.secure = secure;
    return head;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_route_is_found_with_its_parameters) {
    auto found = find("POST", "/sessions/abc/runs/0f/stop?x=1&y");
    BOOST_TEST((found.kind == outcome::found));
    BOOST_TEST(found.index == 7U);
    BOOST_TEST(found.parameter("session_id") == "abc");
    BOOST_TEST(found.parameter("run_id") == "0f");
    BOOST_TEST(found.parameter("nothing") == "");
    BOOST_TEST(found.query == "x=1&y");
    BOOST_TEST(find("GET", "/").index == 0U);
    BOOST_TEST(find("GET", "/sessions?").index == 3U);
    BOOST_TEST(find("GET", "/sessions?").query == "");
    BOOST_TEST(find("GET", "/sessions/a/events").index == 6U); // the first that fits
    BOOST_TEST(find("GET", "/sessions/a/b").index == 8U);
}

BOOST_AUTO_TEST_CASE(escapes_are_decoded_before_matching) {
    auto found = find("GET", "/sessions/x%2Fevents");
    BOOST_TEST(found.index == 6U);
    BOOST_TEST(found.parameter("session_id") == "x");
    BOOST_TEST(find("GET", "/%68ealthz").index == 1U);
    BOOST_TEST(find("GET", "/sessions/a%20b").parameter("session_id") == "a b");
    BOOST_TEST(find("GET", "/sessions/a+b").parameter("session_id") == "a+b");
    BOOST_TEST(find("GET", "/sessions/%C3%BC").parameter("session_id") == "\xC3\xBC");
    BOOST_TEST(find("GET", "/sessions/a%252F").parameter("session_id") == "a%2F");
    // A '?' that is escaped belongs to the path.
    BOOST_TEST(find("GET", "/sessions/a%3Fb").parameter("session_id") == "a?b");
}

BOOST_AUTO_TEST_CASE(odd_escapes_do_no_harm) {
    BOOST_TEST(find("GET", "/sessions/%").parameter("session_id") == "%");
    BOOST_TEST(find("GET", "/sessions/%4").parameter("session_id") == "%4");
    BOOST_TEST(find("GET", "/sessions/%zz").parameter("session_id") == "%zz");
    BOOST_TEST(find("GET", "/sessions/%%41").parameter("session_id") == "%A");
    BOOST_TEST(find("GET", "/sessions/%00").parameter("session_id") == std::string_view("\0", 1));
    BOOST_TEST(find("GET", "/sessions/%FF").parameter("session_id") == "\xEF\xBF\xBD");
    BOOST_TEST(find("GET", "/sessions/%C0%AF").parameter("session_id") == "\xEF\xBF\xBD\xEF\xBF\xBD");
    BOOST_TEST((find("GET", "/healthz%0A").kind == outcome::unknown_path));
    BOOST_TEST((find("GET", "/healthz%00").kind == outcome::unknown_path));
}

BOOST_AUTO_TEST_CASE(unknown_paths_are_404) {
    for (const char* target : {"/nothing", "//healthz", "/sessions//events", "/healthz/x", "/Healthz",
                               "/sessions/../healthz/x", "/./healthz", "*", "", "//", "///", "/nothing/"}) {
        BOOST_TEST((find("GET", target).kind == outcome::unknown_path), target);
    }
    // Dot segments mean nothing special: this is a session whose id the handler will refuse.
    BOOST_TEST(find("GET", "/sessions/..").parameter("session_id") == "..");
}

BOOST_AUTO_TEST_CASE(a_wrong_method_is_405_and_every_method_of_the_path_is_named) {
    const auto found = find("PUT", "/sessions/abc");
    BOOST_TEST((found.kind == outcome::unknown_method));
    BOOST_TEST(found.allow == "DELETE, GET");
    BOOST_TEST(find("HEAD", "/sessions").allow == "GET, POST");
    BOOST_TEST(find("OPTIONS", "/healthz").allow == "GET");
    BOOST_TEST(find("get", "/healthz").allow == "GET");
    const auto answer = router::unmatched(asked("h", false), found);
    BOOST_TEST(answer.status == 405U);
    BOOST_TEST(answer.body == "{\"detail\":\"Method Not Allowed\"}");
    BOOST_TEST(answer.headers.back().first == "Allow");
    BOOST_TEST(answer.headers.back().second == "DELETE, GET");
}

BOOST_AUTO_TEST_CASE(slashes_at_the_end_of_a_known_path_redirect) {
    auto found = find("POST", "/sessions/?a=b%20c");
    BOOST_TEST((found.kind == outcome::trailing_slash));
    BOOST_TEST(found.location == "/sessions?a=b%20c");
    BOOST_TEST(find("PUT", "/healthz///").location == "/healthz"); // whatever the method
    BOOST_TEST(find("GET", "/sessions/%C3%BC%20%25%0D%0Ax/").location == "/sessions/%C3%BC%20%25%0D%0Ax");
    BOOST_TEST(find("GET", "/sessions/a%2F").location == "/sessions/a");
    auto answer = router::unmatched(asked("h:1", false), found);
    BOOST_TEST(answer.status == 307U);
    BOOST_TEST(answer.body == "");
    BOOST_TEST(answer.headers.back().first == "Location");
    BOOST_TEST(answer.headers.back().second == "http://h:1/sessions?a=b%20c");
    BOOST_TEST(router::unmatched(asked("h", true), found).headers.back().second ==
               "https://h/sessions?a=b%20c");
    BOOST_TEST(router::unmatched(asked("", true), found).headers.back().second == "/sessions?a=b%20c");
}

BOOST_AUTO_TEST_CASE(an_unknown_path_is_answered_as_json) {
    const auto answer = router::unmatched(asked("h", false), find("GET", "/nothing"));
    BOOST_TEST(answer.status == 404U);
    BOOST_TEST(answer.body == "{\"detail\":\"Not Found\"}");
    BOOST_TEST(answer.headers.back().second == "application/json");
}

BOOST_AUTO_TEST_CASE(the_patterns_are_listed_sorted_and_once) {
    const std::vector<std::string> expected{"/healthz",
                                            "/sessions",
                                            "/sessions/{session_id}",
                                            "/sessions/{session_id}/events",
                                            "/sessions/{session_id}/runs/{run_id}/stop",
                                            "/sessions/{session_id}/{other}"};
    BOOST_TEST(routes.patterns() == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_malformed_pattern_is_a_bug_found_at_once) {
    for (const char* pattern : {"", "a", "/{a}b", "/a{b}", "/{}", "/{a"}) {
        const std::array<router::endpoint, 1> row{{{"GET", pattern}}};
        BOOST_CHECK_THROW(router::table{row}, std::logic_error);
    }
}

BOOST_AUTO_TEST_CASE(a_query_is_form_encoded) {
    const router::query fields(
        "path=%2Fworkspace%2Fdir+one%2F%C3%BC%2B%26&a=1&a=2&flag&&=x&b=%FF&c=%zz&d=a=b&%61+b=");
    BOOST_TEST((fields.get("path") == std::optional<std::string_view>("/workspace/dir one/\xC3\xBC+&")));
    BOOST_TEST((fields.get("a") == std::optional<std::string_view>("2")));
    BOOST_TEST((fields.get("flag") == std::optional<std::string_view>("")));
    BOOST_TEST((fields.get("") == std::optional<std::string_view>("x")));
    BOOST_TEST((fields.get("b") == std::optional<std::string_view>("\xEF\xBF\xBD")));
    BOOST_TEST((fields.get("c") == std::optional<std::string_view>("%zz")));
    BOOST_TEST((fields.get("d") == std::optional<std::string_view>("a=b")));
    BOOST_TEST((fields.get("a b") == std::optional<std::string_view>("")));
    BOOST_TEST(!fields.get("A"));
    BOOST_TEST(fields.all().size() == 9U);
    BOOST_TEST(router::query("").all().empty());
}
