#include "with_fake.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>

#include <mutex>

using namespace sandboxd;
using namespace sandboxd::test;

namespace {

const std::string chunked =
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";

std::string chunk(std::string_view text) {
    std::array<char, 20> size{};
    std::snprintf(size.data(), size.size(), "%zx\r\n", text.size());
    return size.data() + std::string(text) + "\r\n";
}

std::string event(std::string_view action, std::string_view id, long nano, std::size_t padding = 0) {
    return R"({"Type":"container","Action":")" + std::string(action) + R"(","Actor":{"ID":")" +
           std::string(id) + R"(","Attributes":{"pad":")" + std::string(padding, 'p') + R"("}},"timeNano":)" +
           std::to_string(nano) + "}\n";
}

} // namespace

BOOST_FIXTURE_TEST_CASE(a_pull_tells_its_progress, with_fake) {
    fake.on("POST /images/create", [](const auto&, const auto& to) {
        to.send_split(chunked +
                          chunk(R"({"status":"Pulling","id":"l1","progressDetail":{"current":5,"total":10}})"
                                "\r\n{\"sta") +
                          chunk("tus\":\"Done\"}\n") + "0\r\n\r\n",
                      7);
        return true;
    });
    std::string told;
    const auto progress = [&](const docker::pull_progress& one) {
        told += one.layer + "|" + one.status + "|" + std::to_string(one.current.value_or(0)) + "/" +
                std::to_string(one.total.value_or(0)) + ";";
    };
    BOOST_TEST(get(connect().pull("python:3", "", progress, 60s)).has_value());
    BOOST_TEST(told == "l1|Pulling|5/10;|Done|0/0;");
    const auto request = fake.seen("/images/create").at(0);
    BOOST_TEST(request.target == "/v1.41/images/create?fromImage=python&tag=3");
    BOOST_TEST(request.fields.count("x-registry-auth") == 0U);
}

BOOST_FIXTURE_TEST_CASE(a_build_sends_its_dockerfile_and_tells_lines, with_fake) {
    fake.on("POST /build", [](const auto&, const auto& to) {
        to.send_split(chunked +
                          chunk(R"({"stream":"Step 1/2 : FROM box"})"
                                R"({"stream":"\n"}{"stream":" ---\u003e 01\n"})") +
                          chunk(R"({"stream":"\u001b[91mred\u001b[0m\r\ntwo\nthr"}{"stream":"ee"})") +
                          chunk(R"({"aux":{"ID":"sha256:1"}})") + "0\r\n\r\n",
                      9);
        return true;
    });
    std::vector<std::string> told;
    docker::build_request what{"repo:tag", "FROM box\nRUN true", {{"HTTP_PROXY", "http://p:1/?a&b"}}};
    const auto each = [&](const std::string& line) { told.push_back(line); };
    BOOST_TEST(get(connect().build(std::move(what), each, 60s)).has_value());
    const std::vector<std::string> expected{"Step 1/2 : FROM box", " ---> 01", "red", "two", "three"};
    BOOST_TEST(told == expected, boost::test_tools::per_element());
    const auto request = fake.seen("/build").at(0);
    BOOST_TEST(request.target == "/v1.41/build?t=repo%3Atag&version=1&rm=1&forcerm=1&buildargs="
                                 "%7B%22HTTP_PROXY%22%3A%22http%3A%2F%2Fp%3A1%2F%3Fa%26b%22%7D");
    BOOST_TEST(request.fields.at("content-type") == "application/x-tar");
    BOOST_TEST(request.body.substr(0, 10) == "Dockerfile");
    BOOST_TEST(request.body.substr(512, 17) == "FROM box\nRUN true");
}

BOOST_FIXTURE_TEST_CASE(a_step_that_fails_fails_the_build_and_a_cut_build_too, with_fake) {
    fake.on("POST /build", [](const seen_request& request, const fake_connection& to) {
        if (request.target.find("t=cut") != std::string::npos) {
            to.send(chunked + chunk("{\"stream\":\"x\\n\"}") + chunk("{\"stream\""));
            return false;
        }
        to.send(
            chunked +
            chunk(
                R"({"stream":"last words"}{"errorDetail":{"code":3,"message":"returned a non-zero code: 3"},)"
                R"("error":"returned a non-zero code: 3"})") +
            "0\r\n\r\n");
        return true;
    });
    std::string told;
    const auto each = [&](const std::string& line) { told += line; };
    docker::build_request bad{"bad", "FROM box", {}};
    const auto failed = get(connect().build(std::move(bad), each, 60s)).error();
    BOOST_TEST(failed.message == "cannot build bad: returned a non-zero code: 3");
    BOOST_TEST(told == "last words");
    docker::build_request cut{"cut", "FROM box", {}};
    BOOST_TEST(code(get(connect().build(std::move(cut), {}, 60s)).error()) == code(errc::protocol));
}

// hard-cases B6 09
BOOST_FIXTURE_TEST_CASE(a_late_failure_of_a_pull_is_a_failure, with_fake) {
    fake.on("POST /images/create", [](const auto&, const auto& to) {
        to.send(chunked + chunk(R"({"errorDetail":{"message":"toomanyrequests: slow down"},"error":"x"})") +
                "0\r\n\r\n");
        return true;
    });
    const auto failed = get(connect().pull("a", "", {}, 60s)).error();
    BOOST_TEST(failed.retryable);
    BOOST_TEST(code(failed) == code(errc::unavailable));
    BOOST_TEST(failed.message == "cannot pull a: toomanyrequests: slow down");
}

BOOST_FIXTURE_TEST_CASE(an_early_failure_and_a_cut_pull_too, with_fake) {
    fake.on("POST /images/create", [](const seen_request& request, const fake_connection& to) {
        if (request.target.find("fromImage=limited") != std::string::npos) {
            to.answer(500, R"({"message":"toomanyrequests: You have reached your pull rate limit."})");
            return true;
        }
        to.send(chunked + chunk("{\"status\":\"x\"}") + chunk("{\"status\""));
        return false;
    });
    auto& one = connect();
    const auto limited = get(one.pull("limited", "", {}, 60s)).error();
    BOOST_TEST(limited.retryable);
    BOOST_TEST(limited.status == 500);
    BOOST_TEST(code(get(one.pull("cut", "", {}, 60s)).error()) == code(errc::protocol));
    BOOST_TEST(code(get(one.pull("bad image", "", {}, 60s)).error()) == code(errc::invalid));
}

BOOST_FIXTURE_TEST_CASE(credentials_are_sent_with_a_pull, with_fake) {
    fake.on("POST /images/create", [](const auto&, const auto& to) {
        to.answer(200, "");
        return true;
    });
    docker::engine_options options;
    options.config_folder = "/d";
    options.files = [](const std::string& path) -> result<std::optional<std::string>> {
        BOOST_TEST(path == "/d/config.json");
        return std::optional<std::string>(R"({"auths":{"ghcr.io":{"identitytoken":"t"}}})");
    };
    BOOST_TEST(get(connect(options).pull("ghcr.io/a/b", "", {}, 60s)).has_value());
    BOOST_TEST(fake.seen("/images/create").at(0).fields.at("x-registry-auth") ==
               "eyJpZGVudGl0eXRva2VuIjoidCIsInNlcnZlcmFkZHJlc3MiOiJnaGNyLmlvIn0=");
}

// hard-cases B2 13, B6 12: 1-byte reads, a 5 KB label, a dropped connection, what happened in the gap; the
// daemon repeats what was at `since`.
BOOST_FIXTURE_TEST_CASE(events_survive_a_lost_stream, with_fake) {
    auto times = std::make_shared<std::atomic<int>>(0);
    fake.on("GET /events", [times](const auto&, const auto& to) {
        if (++*times == 1) {
            to.send_split(chunked + chunk(event("create", "a", 1'000'000'001, 5000) +
                                          event("start", "a", 2'000'000'002)),
                          1);
            return false;
        }
        to.send(chunked + chunk(event("start", "a", 2'000'000'002) + event("die", "a", 3'000'000'003)));
        to.hang();
        return false;
    });
    std::string told;
    int lost = 0;
    boost::asio::cancellation_signal stop;
    docker::event_sink sink;
    sink.connected = [&](bool again) { told += again ? "again;" : "first;"; };
    sink.lost = [&](const docker::engine_error&) { ++lost; };
    sink.event = [&](const docker::engine_event& one) {
        told += one.action + ";";
        if (one.action == "die") {
            stop.emit(boost::asio::cancellation_type::terminal);
        }
    };
    bool ended = false;
    boost::asio::co_spawn(
        context, connect().watch_events({{"type", "container"}}, sink),
        boost::asio::bind_cancellation_slot(stop.slot(), [&](const std::exception_ptr&) { ended = true; }));
    context.run_for(300s); // until nothing is left to do: one byte at a time, on a busy machine
    BOOST_TEST(ended);
    BOOST_TEST(told == "first;create;start;again;die;");
    BOOST_TEST(lost == 1);
    const auto requests = fake.seen("/events");
    BOOST_TEST_REQUIRE(requests.size() == 2U);
    BOOST_TEST(requests[0].target == "/v1.41/events?filters=%7B%22type%22%3A%5B%22container%22%5D%7D");
    BOOST_TEST(requests[1].target ==
               "/v1.41/events?filters=%7B%22type%22%3A%5B%22container%22%5D%7D&since=2.000000002");
}
