#include "sandboxd/sandboxd_workspace.hpp"

#include "core/base64.hpp"
#include "fake_service.hpp"
#include "support/run.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/json.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>

using namespace sandboxd;
using namespace sandboxd::client;
using namespace std::chrono_literals;
using test::fake_peer;
using test::fake_service;
using test::seen_request;

namespace {

constexpr auto all_native =
    R"({"execute_timeout":20,"native_files":true,"native_writes":true,"native_realpath":true})";
constexpr auto ran =
    R"({"stdout":"out","stderr":"err","exit_code":0,"timed_out":false,"output_limited":false})";

sandboxd_workspace workspace_at(const std::string& url, workspace_options options = {}) {
    connection_options where;
    where.url = url;
    options.token = "service-token";
    return sandboxd_workspace::create(where, std::move(options)).value();
}

/// A service whose answers to what is not opening come from `rest`.
fake_service::handler service_with(std::function<void(const fake_peer&, const seen_request&)> rest,
                                   std::string policy = all_native) {
    return [rest = std::move(rest), policy = std::move(policy)](const fake_peer& peer,
                                                                const seen_request& request) {
        if (!test::answer_like_a_service(peer, request, policy)) {
            rest(peer, request);
        }
        return true;
    };
}

template <class T>
failure failed_as(const outcome<T>& answer, fault kind) {
    BOOST_TEST_REQUIRE(answer.has_error());
    BOOST_TEST(name_of(answer.error().kind) == name_of(kind), answer.error().message);
    return answer.error();
}

} // namespace

BOOST_AUTO_TEST_CASE(what_an_open_asks_for) {
    fake_service service(
        service_with([](const fake_peer& peer, const seen_request&) { peer.json(200, ran); }));
    const auto opens = [&](workspace_options options) {
        const auto workspace = workspace_at(service.url(), std::move(options));
        BOOST_TEST(workspace.run({"true"}).value().out == "out");
        const auto seen = service.seen();
        return seen[seen.size() - 3].body;
    };
    BOOST_TEST(opens({}) ==
               R"({"session_id":null,"runtime":null,"tenant":null,"reuse":false,"attach":false})");
    BOOST_TEST(opens({.session_name = "mine", .runtime = "python", .tenant = "t"}) ==
               R"({"session_id":"mine","runtime":"python","tenant":"t","reuse":true,"attach":false})");
    BOOST_TEST(opens({.ref = workspace_ref{.id = "back"}, .session_name = "mine"}) ==
               R"({"session_id":"back","runtime":null,"tenant":null,"reuse":false,"attach":true})");
    BOOST_TEST(
        sandboxd_workspace::create(connection_options{}, {.ref = workspace_ref{"other", "x"}}).has_error());
    BOOST_TEST(sandboxd_workspace::create(connection_options{}, {.session_name = "a/b"}).has_error());
}

BOOST_AUTO_TEST_CASE(a_name_that_is_being_opened_is_asked_for_again) {
    std::atomic<int> asked{0};
    fake_service service([&](const fake_peer& peer, const seen_request& request) {
        if (request.target == "/sessions" && asked++ < 3) {
            peer.json(409, R"({"detail":"mine is opening"})");
        } else if (!test::answer_like_a_service(peer, request, all_native)) {
            peer.json(200, ran);
        }
        return true;
    });
    BOOST_TEST(workspace_at(service.url(), {.session_name = "mine"}).run({"true"}).has_value());
    BOOST_TEST(asked == 4);
    asked = 0;
    // Without a name there is nothing to wait for; nor is there when the service is full.
    BOOST_TEST(failed_as(workspace_at(service.url()).run({"true"}), fault::refused).status.value() == 409);
    BOOST_TEST(asked == 1);
    asked = 0;
    const auto impatient = workspace_at(
        service.url(), {.session_name = "mine", .request_timeout = 1ms, .opening_timeout = 100ms});
    (void)failed_as(impatient.run({"true"}), fault::refused);
    fake_service full([](const fake_peer& peer, const seen_request&) {
        peer.json(429, R"({"detail":"Session limit"})");
        return true;
    });
    BOOST_TEST(failed_as(workspace_at(full.url(), {.session_name = "mine"}).run({"true"}), fault::refused)
                   .status.value() == 429);
    BOOST_TEST(full.count("POST /sessions") == 1);
}

BOOST_AUTO_TEST_CASE(a_slow_open_is_told_once) {
    fake_service service([](const fake_peer& peer, const seen_request& request) {
        peer.pause(request.target == "/sessions" ? 6000 : 0);
        if (!test::answer_like_a_service(peer, request, all_native)) {
            peer.json(200, ran);
        }
        return true;
    });
    std::atomic<int> told{0};
    const auto workspace = workspace_at(service.url(), {.on_wait = [&] {
                                            ++told;
                                            throw std::runtime_error("a notice must not stop the open");
                                        }});
    BOOST_TEST(workspace.run({"true"}).has_value());
    BOOST_TEST(told == 1);
}

BOOST_AUTO_TEST_CASE(a_session_without_a_policy_is_known_all_the_same) {
    fake_service service([](const fake_peer& peer, const seen_request& request) {
        if (request.target == "/policy") {
            peer.json(500, "{}");
        } else {
            (void)test::answer_like_a_service(peer, request);
        }
        return true;
    });
    const auto workspace = workspace_at(service.url());
    (void)failed_as(workspace.run({"true"}), fault::refused);
    BOOST_TEST(workspace.ref().value().id == "s-made");
}

BOOST_AUTO_TEST_CASE(what_the_answer_to_a_command_means) {
    std::string body;
    int status = 200;
    fake_service service(
        service_with([&](const fake_peer& peer, const seen_request&) { peer.json(status, body); }));
    const auto workspace = workspace_at(service.url());
    const auto answer = [&](int with, std::string text, run_options options = {}) {
        status = with;
        body = std::move(text);
        return workspace.run({"true"}, std::move(options));
    };
    BOOST_TEST(answer(200, ran).value().err == "err");
    const auto stopped =
        answer(200, R"({"stdout":"o","stderr":"e","exit_code":null,"timed_out":true})", {.timeout = 1500ms});
    BOOST_TEST(failed_as(stopped, fault::timed_out).message == "the command timed out after 1.5 seconds");
    BOOST_TEST(stopped.error().out == "o");
    BOOST_TEST(stopped.error().err == "e");
    BOOST_TEST(failed_as(answer(200, R"({"stdout":"","stderr":"","exit_code":null,"timed_out":true})",
                                {.timeout = 21s}),
                         fault::timed_out)
                   .message == "the command reached the sandbox's time limit");
    const auto much =
        answer(200, R"({"stdout":"o","stderr":"","exit_code":null,"output_limited":true,"output_limit":77})");
    BOOST_TEST(failed_as(much, fault::output_limited).message.find("more than 77 bytes") !=
               std::string::npos);
    (void)failed_as(answer(200, R"({"stdout":"","stderr":"","exit_code":null})"), fault::malformed);
    (void)failed_as(answer(200, "<html>"), fault::malformed);
    const auto& gone = failed_as(answer(410, R"({"detail":"the sandbox died"})"), fault::gone);
    BOOST_TEST(gone.message == "the session 's-made' is gone: the sandbox died");
    (void)failed_as(answer(404, R"({"detail":"No such session: s-made"})"), fault::gone);
    for (const int other : {401, 409, 429, 500, 501, 504}) {
        BOOST_TEST(failed_as(answer(other, "{}"), fault::refused).status.value() == other);
    }
    BOOST_TEST(service.count("POST /sessions") == 1); // never opened again
}

BOOST_AUTO_TEST_CASE(a_command_without_an_answer_is_stopped) {
    fake_service service([](const fake_peer& peer, const seen_request& request) {
        if (test::answer_like_a_service(peer, request, all_native)) {
            return true;
        }
        if (request.target.ends_with("/stop")) {
            peer.json(204, "");
            return true;
        }
        return false; // the connection is lost in the command
    });
    const auto workspace = workspace_at(service.url());
    (void)failed_as(workspace.run({"true"}), fault::unreachable);
    const auto lines = service.lines();
    BOOST_TEST_REQUIRE(lines.size() == 4U);
    const auto run_id = std::string(boost::json::parse(service.seen()[2].body).at("run_id").as_string());
    BOOST_TEST(run_id.size() == 32U);
    BOOST_TEST(lines[3] == "POST /sessions/s-made/runs/" + run_id + "/stop");
    BOOST_TEST(service.seen()[3].token() == "session-token");
    BOOST_TEST(service.seen()[3].fields.at("content-length") == "0");
}

namespace {

/// Starts `work`, cancels it once so many of these requests have come, and waits for its end; whether it was
/// cut short.
template <class T>
task<bool> cancel_at(task<outcome<T>> work, const fake_service& service, std::string line, int times) {
    const auto executor = co_await boost::asio::this_coro::executor;
    boost::asio::cancellation_signal stop;
    std::optional<bool> aborted;
    auto done = [&aborted](const std::exception_ptr& why, const outcome<T>&) { aborted = why != nullptr; };
    boost::asio::co_spawn(executor, std::move(work),
                          boost::asio::bind_cancellation_slot(stop.slot(), std::move(done)));
    boost::asio::steady_timer timer(executor);
    while (service.count(line) < times) {
        timer.expires_after(2ms);
        co_await timer.async_wait(boost::asio::use_awaitable);
    }
    stop.emit(boost::asio::cancellation_type::terminal);
    while (!aborted) {
        timer.expires_after(2ms);
        co_await timer.async_wait(boost::asio::use_awaitable);
    }
    co_return *aborted;
}

std::string script_of(const seen_request& request) {
    return std::string(boost::json::parse(request.body).at("argv").as_array().at(2).as_string());
}

} // namespace

BOOST_AUTO_TEST_CASE(a_cancelled_command_is_stopped_before_its_caller_goes_on) {
    fake_service service([](const fake_peer& peer, const seen_request& request) {
        if (test::answer_like_a_service(peer, request, all_native)) {
            return true;
        }
        if (!request.target.ends_with("/stop")) {
            peer.hang();
            return false;
        }
        peer.json(204, "");
        return true;
    });
    boost::asio::io_context context;
    connection_options where;
    where.url = service.url();
    const auto workspace =
        async_sandboxd_workspace::create(context.get_executor(), where, {.token = "t"}).value();
    BOOST_TEST(test::get(context,
                         cancel_at(workspace.run({"sleep", "9"}), service, "POST /sessions/s-made/run", 1)));
    BOOST_TEST(service.lines().back().ends_with("/stop"));
}

BOOST_AUTO_TEST_CASE(a_cancelled_write_by_shell_leaves_no_temporary_file_and_no_caller_waiting) {
    // The service hangs from the script that is given on, also in what tidies up.
    for (const int answered : {0, 1}) {
        std::atomic<int> runs{0};
        fake_service service([&](const fake_peer& peer, const seen_request& request) {
            if (test::answer_like_a_service(peer, request, R"({"execute_timeout":3600})")) {
                return true;
            }
            if (request.target.ends_with("/run") && runs++ >= answered) {
                peer.hang();
                return false;
            }
            peer.json(200, R"({"stdout":"","stderr":"","exit_code":0})");
            return true;
        });
        boost::asio::io_context context;
        connection_options where;
        where.url = service.url();
        const auto workspace =
            async_sandboxd_workspace::create(context.get_executor(), where, {.token = "t"}).value();
        BOOST_TEST(test::get(context, cancel_at(workspace.write_bytes("/workspace/x", "data"), service,
                                                "POST /sessions/s-made/run", answered + 1)));
        std::vector<std::string> scripts;
        for (const auto& one : service.seen()) {
            if (one.target.ends_with("/run")) {
                scripts.push_back(script_of(one));
            }
        }
        BOOST_TEST_REQUIRE(scripts.size() == static_cast<std::size_t>(answered) + 2U);
        BOOST_TEST(scripts.back().find("rm -f") != std::string::npos, scripts.back());
    }
}

BOOST_AUTO_TEST_CASE(a_file_without_an_end_is_not_read_for_ever) {
    constexpr std::size_t piece = std::size_t{4} << 20U;
    std::string said = "12";
    std::size_t bytes = piece;
    fake_service service(service_with(
        [&](const fake_peer& peer, const seen_request& request) {
            const bool asks_size = boost::json::parse(request.body).at("argv").as_array().size() == 6;
            boost::json::object answer{{"stderr", ""}, {"exit_code", 0}};
            answer["stdout"] = asks_size ? said : core::base64(std::string(bytes, 'x'));
            peer.json(200, boost::json::serialize(answer));
        },
        R"({"execute_timeout":20})"));
    connection_options where;
    where.url = service.url();
    where.max_answer_bytes = std::size_t{9} << 20U;
    const auto workspace = sandboxd_workspace::create(where, {.token = "t"}).value();
    // It says that there are 12 bytes, and goes on.
    BOOST_TEST(failed_as(workspace.read_bytes("/workspace/x"), fault::failed).message ==
               "/workspace/x: 12582912 bytes, more than the 9437184 that are read at most");
    BOOST_TEST(service.count("POST /sessions/s-made/run") == 4); // the size and three pieces
    said = "1099511627776";
    BOOST_TEST(failed_as(workspace.read_bytes("/workspace/x"), fault::failed).message ==
               "/workspace/x: 1099511627776 bytes, more than the 9437184 that are read at most");
    BOOST_TEST(service.count("POST /sessions/s-made/run") == 5);
    said = "12";
    bytes = piece + 1;
    (void)failed_as(workspace.read_bytes("/workspace/x"), fault::malformed);
}

BOOST_AUTO_TEST_CASE(what_the_service_hands_back_is_done_by_the_shell) {
    fake_service service(service_with([](const fake_peer& peer, const seen_request& request) {
        if (request.target.find("/files/") != std::string::npos) {
            peer.json(409, R"({"detail":"a link: ask the sandbox"})");
            return;
        }
        const auto argv = boost::json::parse(request.body).at("argv").as_array();
        // A script over the path, which is an argument and never a part of the script.
        BOOST_REQUIRE(argv.at(0).as_string() == "/bin/sh");
        BOOST_REQUIRE(argv.at(4).as_string() == "/workspace/it's");
        peer.json(200, R"({"stdout":"f 12\n","stderr":"","exit_code":0})");
    }));
    const auto workspace = workspace_at(service.url());
    const auto row = workspace.stat("/workspace/it's").value();
    BOOST_TEST(row.name == "it's");
    BOOST_TEST(row.size.value() == 12U);
    BOOST_TEST(service.count("POST /sessions/s-made/files/stat") == 1);
    BOOST_TEST(service.count("POST /sessions/s-made/run") == 1);
}

BOOST_AUTO_TEST_CASE(the_statuses_of_scripts_and_of_the_service_are_the_same_faults) {
    std::string body;
    int status = 200;
    const auto answer = [&](const fake_peer& peer, const seen_request&) { peer.json(status, body); };
    fake_service by_shell(service_with(answer, R"({"execute_timeout":20})"));
    const auto shell = workspace_at(by_shell.url());
    for (const auto& [code, kind] : std::vector<std::pair<int, fault>>{{102, fault::not_found},
                                                                       {113, fault::denied},
                                                                       {116, fault::invalid},
                                                                       {117, fault::exists},
                                                                       {120, fault::not_a_directory},
                                                                       {121, fault::is_a_directory},
                                                                       {122, fault::failed},
                                                                       {1, fault::failed}}) {
        body = R"({"stdout":"","stderr":"why\n","exit_code":)" + std::to_string(code) + "}";
        (void)failed_as(shell.remove("/workspace/x"), kind);
    }
    BOOST_TEST(shell.remove("/workspace/x").error().message == "why: /workspace/x");
    (void)failed_as(shell.read_bytes(""), fault::invalid);
    (void)failed_as(shell.read_bytes(std::string("a\0b", 3)), fault::invalid);
    body = R"({"stdout":"nonsense","stderr":"","exit_code":0})";
    (void)failed_as(shell.stat("/workspace/x"), fault::malformed);
    (void)failed_as(shell.list_dir("/workspace/x"), fault::malformed);
    (void)failed_as(shell.read_bytes("/workspace/x"), fault::malformed);

    fake_service native(service_with(answer));
    const auto workspace = workspace_at(native.url());
    for (const auto& [name, with, kind] :
         std::vector<std::tuple<std::string, int, fault>>{{"FileNotFoundError", 404, fault::not_found},
                                                          {"IsADirectoryError", 400, fault::is_a_directory},
                                                          {"NotADirectoryError", 400, fault::not_a_directory},
                                                          {"FileExistsError", 400, fault::exists},
                                                          {"ValueError", 400, fault::invalid},
                                                          {"SomethingElse", 400, fault::refused}}) {
        status = with;
        body = R"({"detail":{"error":")" + name + R"(","message":"in words"}})";
        (void)failed_as(workspace.read_bytes("/workspace/x"), kind);
    }
    status = 404;
    BOOST_TEST(!workspace.exists("/workspace/x").has_value());
    body = R"({"detail":"No such session: s-made"})";
    (void)failed_as(workspace.read_bytes("/workspace/x"), fault::gone);
}

BOOST_AUTO_TEST_CASE(paths_in_a_query_are_encoded) {
    fake_service service(
        service_with([](const fake_peer& peer, const seen_request&) { peer.json(204, ""); }));
    const auto workspace = workspace_at(service.url());
    BOOST_TEST(workspace.write_bytes("/workspace/a b+c", "data").has_value());
    const auto last = service.seen().back();
    BOOST_TEST(last.target == "/sessions/s-made/files/write?path=%2Fworkspace%2Fa%20b%2Bc");
    BOOST_TEST(last.fields.at("content-type") == "application/octet-stream");
    BOOST_TEST(last.body == "data");
}
