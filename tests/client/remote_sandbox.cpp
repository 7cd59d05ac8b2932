#include "sandboxd/remote_sandbox.hpp"

#include "fake_service.hpp"
#include "support/run.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/json.hpp>
#include <boost/test/unit_test.hpp>

#include <thread>

using namespace sandboxd;
using namespace sandboxd::client;
using namespace std::chrono_literals;
using test::fake_peer;
using test::fake_service;
using test::seen_request;

namespace {

remote_sandbox sandbox_at(const std::string& url, remote_sandbox_options options = {}) {
    connection_options where;
    where.url = url;
    options.token = "service-token";
    return remote_sandbox::create(where, std::move(options)).value();
}

/// A service whose operations all answer the same.
fake_service::handler operations_answer(std::string body, int status = 200) {
    return [body = std::move(body), status](const fake_peer& peer, const seen_request& request) {
        if (!test::answer_like_a_service(peer, request)) {
            peer.json(status, body);
        }
        return true;
    };
}

const auto unavailable = std::string("Error: sandbox service unavailable");

/// Contract 8.1 lines 59, 130, 249, 250: what every operation makes of a failure.
void check_degraded(const remote_sandbox& sandbox) {
    const auto ran = sandbox.execute("true");
    BOOST_TEST(ran.output == unavailable);
    BOOST_TEST(ran.exit_code.value() == 1);
    BOOST_TEST(!ran.truncated);
    BOOST_TEST(sandbox.read("x") == "Error: could not read 'x'");
    BOOST_TEST(sandbox.read_bytes("x").empty());
    BOOST_TEST(sandbox.write("x", "y").error.value() == "Error: could not write 'x'");
    BOOST_TEST(sandbox.edit("x", "a", "b").error.value() == "Error: could not edit 'x'");
    BOOST_TEST(!sandbox.exists("x"));
    BOOST_TEST(sandbox.ls_info("x").empty());
    BOOST_TEST(sandbox.glob_info("x").empty());
    BOOST_TEST(sandbox.grep_raw("x").error.value() == "Error: could not search for 'x'");
    BOOST_TEST(!sandbox.is_alive());
    BOOST_TEST(!sandbox.resource_usage().has_value());
}

} // namespace

BOOST_AUTO_TEST_CASE(constructing_asks_nothing_and_the_first_operation_opens_once) {
    fake_service service(operations_answer(R"({"output":"hi","exit_code":3,"truncated":true})"));
    const auto sandbox =
        sandbox_at(service.url(),
                   {.session_id = "mine", .runtime = "python", .tenant = "t", .reuse = true, .timeout = 10s});
    BOOST_TEST(service.lines().empty());
    for (int i = 0; i < 2; ++i) {
        const auto ran = sandbox.execute("echo", 7s);
        BOOST_TEST(ran.output == "hi");
        BOOST_TEST(ran.exit_code.value() == 3);
        BOOST_TEST(ran.truncated);
    }
    const auto seen = service.seen();
    BOOST_TEST_REQUIRE(seen.size() == 4U);
    BOOST_TEST(seen[0].body ==
               R"({"session_id":"mine","runtime":"python","tenant":"t","reuse":true,"attach":false})");
    BOOST_TEST(seen[0].token() == "service-token");
    BOOST_TEST(seen[1].target == "/policy");
    BOOST_TEST(seen[2].target == "/sessions/mine/exec");
    BOOST_TEST(seen[2].token() == "session-token");
    BOOST_TEST(seen[2].body == R"({"command":"echo","timeout_seconds":7})");
    BOOST_TEST(service.connections() == 1);
}

BOOST_AUTO_TEST_CASE(operations_that_come_at_once_open_one_session) {
    fake_service service([](const fake_peer& peer, const seen_request& request) {
        peer.pause(request.target == "/sessions" ? 100 : 0);
        if (!test::answer_like_a_service(peer, request)) {
            peer.json(200, R"({"exists":true})");
        }
        return true;
    });
    const auto sandbox = sandbox_at(service.url());
    std::atomic<int> there{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) {
        threads.emplace_back([&] { there += sandbox.exists("x") ? 1 : 0; });
    }
    for (auto& one : threads) {
        one.join();
    }
    BOOST_TEST(there == 8);
    BOOST_TEST(service.count("POST /sessions") == 1);
}

BOOST_AUTO_TEST_CASE(what_goes_wrong_looks_like_a_failed_operation) {
    for (const auto& [status, body] :
         std::vector<std::pair<int, std::string>>{{404, R"({"detail":"No such session: x"})"},
                                                  {500, "oops"},
                                                  {200, "\"unexpected\""},
                                                  {200, "<html>proxy</html>"},
                                                  {200, "\xFF\xFE"},
                                                  {200, "[1,2]"},
                                                  {302, "{}"}}) {
        fake_service service(operations_answer(body, status));
        check_degraded(sandbox_at(service.url()));
    }
    fake_service refusing([](const fake_peer& peer, const seen_request&) {
        peer.json(429, R"x({"detail":"Session limit reached (1)"})x");
        return true;
    });
    check_degraded(sandbox_at(refusing.url()));
}

BOOST_AUTO_TEST_CASE(start_tells_why_there_is_no_session) {
    {
        fake_service refusing([](const fake_peer& peer, const seen_request&) {
            peer.json(429, R"x({"detail":"Session limit reached (1)"})x");
            return true;
        });
        const auto started = sandbox_at(refusing.url()).start();
        BOOST_TEST_REQUIRE(started.has_error());
        BOOST_TEST(name_of(started.error().kind) == "refused");
        BOOST_TEST(started.error().status.value() == 429);
        BOOST_TEST(started.error().message ==
                   "the sandbox service refused to open a session (HTTP 429): Session limit reached (1)");
    }
    for (const auto& body :
         {std::string("<html>"), std::string("{}"), test::created_json("../etc", "t"),
          test::created_json("s", "a\\nb"), std::string(R"({"session":)") + test::session_json("s") + "}"}) {
        fake_service odd([body](const fake_peer& peer, const seen_request&) {
            peer.json(200, body);
            return true;
        });
        const auto started = sandbox_at(odd.url()).start();
        BOOST_TEST_REQUIRE(started.has_error());
        BOOST_TEST(name_of(started.error().kind) == "malformed");
        BOOST_TEST(started.error().message.find("something that is not a session") != std::string::npos);
    }
    std::string gone;
    {
        fake_service closed(operations_answer("{}"));
        gone = closed.url();
    }
    const auto started = sandbox_at(gone).start();
    BOOST_TEST_REQUIRE(started.has_error());
    BOOST_TEST(name_of(started.error().kind) == "unreachable");
    BOOST_TEST(!started.error().status.has_value());
    BOOST_TEST(started.error().message.find("at " + gone + ": cannot connect to 127.0.0.1:") !=
               std::string::npos);
}

BOOST_AUTO_TEST_CASE(an_id_the_service_would_refuse_fails_at_once) {
    for (const std::string id : {"../etc", "a/b", "", "-x", "a b"}) {
        const auto made = remote_sandbox::create(connection_options{}, {.token = "t", .session_id = id});
        BOOST_TEST_REQUIRE(made.has_error());
        BOOST_TEST(name_of(made.error().kind) == "invalid");
    }
    BOOST_TEST(remote_sandbox::create(connection_options{}, {.token = "t", .session_id = "user-123.v2"})
                   .has_value());
    BOOST_TEST(remote_sandbox::create(connection_options{}, {.token = "t", .tenant = "a b"}).has_error());
    BOOST_TEST(remote_sandbox::create(connection_options{}, {.token = "a\r\nX: y"}).has_error());
    const auto sandbox = remote_sandbox::create(connection_options{}, {.token = "t"}).value();
    BOOST_TEST(sandbox.session_id().size() == std::string("remote-").size() + 12);
    BOOST_TEST(sandbox.session_id().starts_with("remote-"));
    BOOST_CHECK_THROW((void)remote_sandbox::create(connection_options{}, {.session_id = "a/b"}).value(),
                      failure_error);
}

BOOST_AUTO_TEST_CASE(the_ceiling_is_learned_or_the_own_timeout_stands) {
    const auto ceiling = [](const std::string& policy, int status = 200) {
        fake_service service([&](const fake_peer& peer, const seen_request& request) {
            if (request.target == "/policy") {
                peer.json(status, policy);
            } else {
                (void)test::answer_like_a_service(peer, request);
            }
            return true;
        });
        const auto sandbox = sandbox_at(service.url(), {.timeout = 9s});
        BOOST_TEST((sandbox.server_timeout() == 9s));
        BOOST_TEST(sandbox.start().has_value());
        return sandbox.server_timeout();
    };
    BOOST_TEST((ceiling(R"({"execute_timeout":300})") == 300s));
    BOOST_TEST((ceiling(R"({"execute_timeout":0})") == 9s));
    BOOST_TEST((ceiling(R"({"execute_timeout":-5})") == 9s));
    BOOST_TEST((ceiling(R"({"execute_timeout":"7"})") == 9s));
    BOOST_TEST((ceiling(R"({"execute_timeout":1e400})") == 9s));
    BOOST_TEST((ceiling("{}") == 9s));
    BOOST_TEST((ceiling("nonsense") == 9s));
    BOOST_TEST((ceiling("{}", 401) == 9s));
}

BOOST_AUTO_TEST_CASE(stop_closes_and_start_opens_another) {
    std::atomic<int> opened{0};
    fake_service service([&](const fake_peer& peer, const seen_request& request) {
        if (request.method == "POST" && request.target == "/sessions") {
            peer.json(200, test::created_json("mine", "token-" + std::to_string(opened++)));
        } else if (!test::answer_like_a_service(peer, request)) {
            peer.json(200, R"({"exists":true})");
        }
        return true;
    });
    const auto sandbox = sandbox_at(service.url(), {.session_id = "mine"});
    sandbox.stop(); // before the first start: nothing to do
    BOOST_TEST(service.lines().empty());
    BOOST_TEST(sandbox.exists("x"));
    sandbox.stop();
    sandbox.stop();
    BOOST_TEST(sandbox.exists("x"));
    sandbox.stop(true);
    const std::vector<std::string> expected{
        "POST /sessions", "GET /policy", "POST /sessions/mine/exists", "DELETE /sessions/mine",
        "POST /sessions", "GET /policy", "POST /sessions/mine/exists", "DELETE /sessions/mine?purge=true"};
    BOOST_TEST(service.lines() == expected, boost::test_tools::per_element());
    BOOST_TEST(service.seen()[3].token() == "token-0");
    BOOST_TEST(service.seen()[6].token() == "token-1");
    // Each stop closes its own connections.
    BOOST_TEST(service.connections() == 2);
}

BOOST_AUTO_TEST_CASE(shared_connections_stay_open) {
    fake_service service(operations_answer(R"({"exists":true})"));
    connection_options where;
    where.url = service.url() + "/"; // a trailing slash is cut
    const auto shared = connections::create(where).value();
    for (int i = 0; i < 3; ++i) {
        const auto sandbox = remote_sandbox::create(shared, {.token = "t"}).value();
        BOOST_TEST(sandbox.exists("x"));
        sandbox.stop();
        BOOST_TEST(shared->idle() == 1U);
    }
    BOOST_TEST(service.connections() == 1);
    BOOST_TEST(service.count("POST /sessions") == 3);
}

BOOST_AUTO_TEST_CASE(a_failing_search_and_every_byte_reach_the_caller) {
    fake_service service([](const fake_peer& peer, const seen_request& request) {
        if (test::answer_like_a_service(peer, request)) {
            return true;
        }
        if (request.target.ends_with("/grep")) {
            peer.json(200, R"({"matches":[],"error":"Error: Unmatched ( or \\("})");
        } else if (request.target.ends_with("/write")) {
            const auto body = boost::json::parse(request.body);
            BOOST_REQUIRE(body.at("content_b64").as_string() == "AP8KDQ==");
            peer.json(200, R"({"path":"/workspace/b","error":null})");
        } else if (request.target.ends_with("/read_bytes")) {
            const bool odd = request.body.find("odd") != std::string::npos;
            peer.json(200, odd ? R"({"content_b64":"!!"})" : R"({"content_b64":"AP8KDQ=="})");
        } else {
            peer.json(
                200, R"([{"name":"a","path":"/workspace/a","is_dir":false,"size":3},)"
                     R"({"name":"d","path":"/workspace/d","is_dir":true,"size":null,"modified_at":"2024"}])");
        }
        return true;
    });
    const auto sandbox = sandbox_at(service.url());
    BOOST_TEST(sandbox.grep_raw("(").error.value() == "Error: Unmatched ( or \\(");
    const std::string bytes("\0\xFF\n\r", 4);
    BOOST_TEST(sandbox.write("b", bytes).path.value() == "/workspace/b");
    BOOST_TEST(sandbox.read_bytes("b") == bytes);
    BOOST_TEST(sandbox.read_bytes("odd").empty());
    const auto rows = sandbox.ls_info(".");
    BOOST_TEST_REQUIRE(rows.size() == 2U);
    BOOST_TEST(rows[0].size.value() == 3U);
    BOOST_TEST(!rows[0].modified_at.has_value());
    BOOST_TEST(rows[1].is_dir);
    BOOST_TEST(rows[1].modified_at.value() == "2024");
    // What is no UTF-8 can't be said in JSON: refused here, not sent as something else.
    BOOST_TEST(sandbox.execute("echo \xFF").output == "Error: the command is not valid UTF-8");
    BOOST_TEST(sandbox.read("\xFF") == "Error: could not read '\xFF'");
    BOOST_TEST(service.count("POST /sessions/" + sandbox.session_id() + "/exec") == 0);
}

namespace {

task<std::string> cancelled(task<execute_response> work, boost::asio::any_io_executor executor,
                            const fake_service& service, std::string line) {
    boost::asio::cancellation_signal stop;
    std::string how = "still running";
    boost::asio::co_spawn(executor, std::move(work),
                          boost::asio::bind_cancellation_slot(
                              stop.slot(), [&how](const std::exception_ptr& why, const execute_response&) {
                                  try {
                                      if (why) {
                                          std::rethrow_exception(why);
                                      }
                                      how = "an answer";
                                  } catch (const boost::system::system_error& e) {
                                      how = e.code().message();
                                  }
                              }));
    boost::asio::steady_timer timer(executor);
    while (service.count(line) == 0) {
        timer.expires_after(2ms);
        co_await timer.async_wait(boost::asio::use_awaitable);
    }
    stop.emit(boost::asio::cancellation_type::terminal);
    for (int i = 0; i < 2000 && how == "still running"; ++i) {
        timer.expires_after(2ms);
        co_await timer.async_wait(boost::asio::use_awaitable);
    }
    co_return how;
}

} // namespace

BOOST_AUTO_TEST_CASE(awaited_calls_can_be_cancelled_and_an_open_is_waited_for) {
    fake_service service([](const fake_peer& peer, const seen_request& request) {
        peer.pause(request.target == "/sessions" ? 150 : 0);
        if (!test::answer_like_a_service(peer, request)) {
            peer.hang();
            return false;
        }
        return true;
    });
    boost::asio::io_context context;
    connection_options where;
    where.url = service.url();
    const auto sandbox =
        async_remote_sandbox::create(context.get_executor(), where, {.session_id = "mine"}).value();
    // In the open: it ends, and the session is known, though no command was started.
    auto how = test::get(
        context, cancelled(sandbox.execute("true"), context.get_executor(), service, "POST /sessions"));
    BOOST_TEST(how == "Operation canceled");
    BOOST_TEST(service.count("GET /policy") == 1);
    BOOST_TEST((sandbox.server_timeout() == 300s));
    BOOST_TEST(service.count("POST /sessions/mine/exec") == 0);
    // In the command: at once.
    how = test::get(context, cancelled(sandbox.execute("sleep"), context.get_executor(), service,
                                       "POST /sessions/mine/exec"));
    BOOST_TEST(how == "Operation canceled");
    BOOST_TEST(service.count("POST /sessions") == 1);
}

BOOST_AUTO_TEST_CASE(a_blocking_client_needs_a_thread_behind_it) {
    boost::asio::io_context context;
    const auto shared = connections::create(context.get_executor(), connection_options{}).value();
    const auto made = remote_sandbox::create(shared, {.token = "t"});
    BOOST_TEST_REQUIRE(made.has_error());
    BOOST_TEST(made.error().message == "a client that blocks needs connections made without an executor");
}
