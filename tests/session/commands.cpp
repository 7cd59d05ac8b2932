#include "session/service.hpp"

#include <boost/test/unit_test.hpp>

using namespace sandboxd;
using namespace std::chrono_literals;

namespace {
std::string run_id(char digit) {
    return std::string(32, digit);
}

session::run_command program(char id, std::vector<std::string> argv, std::optional<double> timeout = {}) {
    return {run_id(id), std::move(argv), {}, timeout};
}
} // namespace

BOOST_FIXTURE_TEST_SUITE(commands, test::with_host)

BOOST_AUTO_TEST_CASE(exec_shows_output_and_code) {
    test::service service(host, store);
    service.open("a");
    auto answer = service.exec("a", "echo hi");
    BOOST_TEST(answer.output == "hi\n");
    BOOST_TEST(answer.end.exit_code.value() == 0);
    BOOST_TEST(!answer.truncated);
    BOOST_TEST(service.exec("a", "exit 7").end.exit_code.value() == 7);
    answer = service.exec("a", "signal 9");
    BOOST_TEST(answer.end.exit_code.value() == 137);
    BOOST_TEST(answer.end.signal.value() == 9);
    const auto unknown = service.get(service.sessions().exec("b", {"true", std::nullopt}, nullptr));
    CHECK_ERROR(unknown, errc::not_found, "No such session: b");
}

BOOST_AUTO_TEST_CASE(exec_timeouts_are_124_at_the_commands_own_deadline) {
    auto config = test::test_settings();
    config.execute_timeout = 2;
    test::service service(host, store, config);
    service.open("a");
    for (const std::optional<std::int64_t> seconds :
         {std::optional<std::int64_t>(1), std::optional<std::int64_t>(0), std::optional<std::int64_t>(900)}) {
        const auto began = std::chrono::steady_clock::now();
        const auto answer = service.get(service.sessions().exec("a", {"hang", seconds}, nullptr));
        const auto took = std::chrono::steady_clock::now() - began;
        BOOST_REQUIRE(answer.has_value());
        BOOST_TEST(answer->end.exit_code.value() == 124);
        BOOST_TEST(answer->end.timed_out);
        // 0 and what is above the ceiling mean the ceiling, 2 s here.
        BOOST_TEST((took >= (seconds == 1 ? 1s : 2s)));
    }
    const auto negative = service.get(service.sessions().exec("a", {"true", -1}, nullptr));
    BOOST_REQUIRE(negative.has_value());
    BOOST_TEST(negative->end.exit_code.value() == 125);
    BOOST_TEST(negative->output == "Error: timeout_seconds must not be negative");
    BOOST_TEST(host->commands == 3);
}

BOOST_AUTO_TEST_CASE(a_command_that_can_not_be_cancelled_ends_after_the_ceiling) {
    auto config = test::test_settings();
    config.execute_timeout = 1;
    test::service service(host, store, config, test::short_patience());
    service.open("a");
    const auto place = host->place_of("a");
    place->frozen = true;
    const auto exec = service.start(service.sessions().exec("a", {"hang", std::nullopt}, nullptr));
    const auto run = service.start(service.sessions().run("a", program('a', {"hang"}, 0.1), nullptr));
    const auto shown = service.ready(run);
    BOOST_REQUIRE(shown.has_value());
    BOOST_TEST(shown->end.timed_out);
    BOOST_TEST(!shown->end.exit_code.has_value());
    const auto late = service.ready(exec);
    CHECK_ERROR(late, errc::timeout, "The command outlasted the service ceiling of 1 seconds");
    const auto log = service.get(service.sessions().events("a", 0));
    BOOST_REQUIRE(log->events.size() == 2U);
    BOOST_TEST(log->events[0].detail == "timed out");
    BOOST_TEST(log->events[1].detail == "");
    BOOST_TEST(!log->events[1].ok);
    BOOST_TEST(service.sessions().health_numbers().running_commands == 0);
    place->frozen = false;
    service.pass(20ms);
}

BOOST_AUTO_TEST_CASE(an_own_timeout_below_the_ceiling_is_no_504_even_when_the_stop_takes_long) {
    test::service service(host, store);
    service.open("a");
    const auto late = service.get(service.sessions().exec("a", {"outlast", 1}, nullptr));
    BOOST_REQUIRE(late.has_value());
    BOOST_TEST(late->end.exit_code.value() == 124);
    BOOST_TEST(late->end.timed_out);
    BOOST_TEST(late->output == "so far\n");
    const auto log = service.get(service.sessions().events("a", 0));
    BOOST_REQUIRE(log->events.size() == 1U);
    BOOST_TEST(log->events[0].detail == "exit 124");
}

BOOST_AUTO_TEST_CASE(run_answers_as_the_contract_has_it) {
    test::service service(host, store);
    service.open("a");
    auto answer = service.get(service.sessions().run("a", program('a', {"echo", "it's"}), nullptr));
    BOOST_REQUIRE(answer.has_value());
    BOOST_TEST(answer->out == "it's\n");
    BOOST_TEST(answer->end.exit_code.value() == 0);
    BOOST_TEST(!answer->output_limit.has_value());
    answer = service.get(service.sessions().run("a", program('b', {"flood"}), nullptr));
    BOOST_TEST(answer->output_limited);
    BOOST_TEST(answer->output_limit.value() == 10'485'760);
    BOOST_TEST(!answer->end.exit_code.has_value());
    answer = service.get(service.sessions().run("a", program('c', {"hang"}, 0.05), nullptr));
    BOOST_TEST(answer->end.timed_out);
    BOOST_TEST(!answer->end.exit_code.has_value());
    const auto log = service.get(service.sessions().events("a", 0));
    BOOST_REQUIRE(log->events.size() == 3U);
    BOOST_TEST(log->events[0].target == R"(echo 'it'"'"'s')");
    BOOST_TEST(log->events[0].detail == "exit 0");
    BOOST_TEST(log->events[1].detail == "output limit");
    BOOST_TEST(log->events[2].detail == "timed out");
}

BOOST_AUTO_TEST_CASE(a_run_id_runs_once_at_a_time) {
    test::service service(host, store);
    service.open("a");
    service.open("b");
    const auto first = service.start(service.sessions().run("a", program('a', {"sleep", "150"}), nullptr));
    service.until([this] { return host->commands == 1; });
    const auto second = service.get(service.sessions().run("a", program('a', {"true"}), nullptr));
    CHECK_ERROR(second, errc::exists, "Run aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa is already running");
    BOOST_TEST(service.get(service.sessions().run("b", program('a', {"true"}), nullptr)).has_value());
    BOOST_TEST(service.ready(first).has_value());
    BOOST_TEST(host->commands == 2);
}

BOOST_AUTO_TEST_CASE(a_stop_ends_a_run_and_forgives_everything_else) {
    test::service service(host, store);
    service.open("a");
    const auto run = service.start(service.sessions().run("a", program('a', {"hang"}), nullptr));
    service.until([this] { return host->commands == 1; });
    BOOST_TEST(service.get(service.sessions().stop_run("a", run_id('a'))).has_value());
    const auto stopped = service.ready(run);
    BOOST_REQUIRE(stopped.has_value());
    BOOST_TEST(stopped->end.exit_code.value() == 143);
    BOOST_TEST(service.get(service.sessions().stop_run("a", run_id('a'))).has_value());
    BOOST_TEST(service.get(service.sessions().stop_run("a", run_id('f'))).has_value());
    host->place_of("a")->alive = false;
    BOOST_TEST(service.get(service.sessions().stop_run("a", run_id('f'))).has_value());
    const auto unknown = service.get(service.sessions().stop_run("b", run_id('a')));
    CHECK_ERROR(unknown, errc::not_found, "No such session: b");
}

BOOST_AUTO_TEST_CASE(commands_beyond_the_limit_wait_their_turn) {
    auto config = test::test_settings();
    config.max_running_commands = 2;
    test::service service(host, store, config);
    service.open("a");
    std::vector<std::shared_ptr<std::optional<result<session::exec_answer>>>> answers;
    for (int i = 0; i < 10; ++i) {
        answers.push_back(service.start(service.sessions().exec("a", {"sleep 20", std::nullopt}, nullptr)));
    }
    for (const auto& each : answers) {
        BOOST_TEST(service.ready(each)->end.exit_code.value() == 0);
    }
    BOOST_TEST(host->most_running == 2);
    BOOST_TEST(host->commands == 10);
    BOOST_TEST(service.sessions().health_numbers().running_commands == 0);
}

BOOST_AUTO_TEST_CASE(waiting_counts_against_the_deadline) {
    auto config = test::test_settings();
    config.max_running_commands = 1;
    test::service service(host, store, config);
    service.open("a");
    const auto first = service.start(service.sessions().exec("a", {"held", std::nullopt}, nullptr));
    service.until([this] { return host->commands == 1; });
    const auto exec = service.start(service.sessions().exec("a", {"echo no", 1}, nullptr));
    const auto run = service.get(service.sessions().run("a", program('a', {"echo", "no"}, 0.1), nullptr));
    BOOST_REQUIRE(run.has_value());
    BOOST_TEST(run->end.timed_out);
    BOOST_TEST(run->out == "");
    const auto shown = service.ready(exec);
    BOOST_REQUIRE(shown.has_value());
    BOOST_TEST(shown->end.exit_code.value() == 124);
    BOOST_TEST(shown->output == "");
    host->let_go = true;
    BOOST_TEST(service.ready(first)->end.exit_code.value() == 0);
    BOOST_TEST(host->commands == 1);
}

BOOST_AUTO_TEST_CASE(what_is_stopped_or_left_while_waiting_never_starts) {
    auto config = test::test_settings();
    config.max_running_commands = 1;
    test::service service(host, store, config);
    service.open("a");
    const auto first = service.start(service.sessions().run("a", program('0', {"hang"}), nullptr));
    service.until([this] { return host->commands == 1; });
    const session::client_probe gone_when_asked = []() -> task<bool> { co_return false; };
    const session::client_probe still_there = []() -> task<bool> { co_return true; };
    const auto stopped = service.start(service.sessions().run("a", program('1', {"true"}), nullptr));
    const auto left = service.start(service.sessions().exec("a", {"true", std::nullopt}, gone_when_asked));
    const auto probed = service.start(service.sessions().run("a", program('2', {"true"}), gone_when_asked));
    const auto stays = service.start(service.sessions().run("a", program('3', {"true"}), still_there));
    service.pass(5ms);
    BOOST_TEST(service.get(service.sessions().stop_run("a", run_id('1'))).has_value());
    const auto shown = service.ready(stopped);
    BOOST_REQUIRE(shown.has_value());
    BOOST_TEST(shown->end.exit_code.value() == 143);
    // A stop does not wait behind the command that holds the only place.
    BOOST_TEST(service.get(service.sessions().stop_run("a", run_id('0'))).has_value());
    BOOST_TEST(service.ready(first).has_value());
    for (const auto& nobody : {service.ready(left).error(), service.ready(probed).error()}) {
        BOOST_TEST(std::string(name_of(nobody.code)) == name_of(errc::unavailable));
        BOOST_TEST(nobody.message == "The client has left before the command started");
    }
    BOOST_TEST(service.ready(stays)->end.exit_code.value() == 0);
    BOOST_TEST(host->commands == 2);
}

BOOST_AUTO_TEST_CASE(a_client_that_leaves_during_a_heal_starts_nothing) {
    test::service service(host, store);
    service.open("a");
    int asked = 0;
    bool there = true;
    const session::client_probe client = [&asked, &there]() -> task<bool> {
        ++asked;
        co_return there;
    };
    BOOST_TEST(service.get(service.sessions().exec("a", {"true", std::nullopt}, client)).has_value());
    BOOST_TEST(asked == 0); // it had nothing to wait for
    for (const bool stays : {false, true}) {
        host->place_of("a")->alive = false;
        host->hold_builds = true;
        const auto answer = service.start(service.sessions().exec("a", {"true", std::nullopt}, client));
        service.pass(5ms);
        there = stays;
        host->hold_builds = false;
        BOOST_TEST(service.ready(answer).has_value() == stays);
        BOOST_TEST(asked == (stays ? 2 : 1));
        BOOST_TEST(host->commands == (stays ? 2 : 1));
    }
}

BOOST_AUTO_TEST_CASE(without_kept_files_a_dead_sandbox_is_healed_by_exec_and_gone_for_run) {
    test::service service(host, store);
    const auto before = service.open("a");
    host->place_of("a")->alive = false;
    const auto refused = service.get(service.sessions().run("a", program('a', {"true"}), nullptr));
    CHECK_ERROR(refused, errc::gone, "The sandbox of session a is gone, and its files with it");
    BOOST_TEST(host->builds == 1);
    auto again = session::open_request{};
    again.session_id = "a";
    again.attach = true;
    const auto found = service.get(service.sessions().open(again));
    BOOST_REQUIRE(found.has_value());
    BOOST_TEST(!found->session.alive);
    BOOST_TEST(found->token == before.token);
    // Several at once build one sandbox.
    const auto one = service.start(service.sessions().exec("a", {"echo 1", std::nullopt}, nullptr));
    const auto two = service.start(service.sessions().exec("a", {"echo 2", std::nullopt}, nullptr));
    BOOST_TEST(service.ready(one)->output == "1\n");
    BOOST_TEST(service.ready(two)->output == "2\n");
    BOOST_TEST(host->builds == 2);
    BOOST_TEST(host->places().size() == 1U);
    BOOST_TEST(service.get(service.sessions().run("a", program('a', {"true"}), nullptr)).has_value());
    BOOST_TEST((service.sessions().authorize(before.token, "a") == auth::scope::session));
    // The records say so too.
    const auto kept = test::get(service.context(), store->load());
    BOOST_REQUIRE(kept->slots.size() == 1U);
    BOOST_TEST(kept->sessions.at(0).session.slot.value() == kept->slots[0].slot);
}

BOOST_AUTO_TEST_CASE(with_kept_files_both_heal) {
    const test::temporary_directory root;
    auto config = test::test_settings();
    config.workspace_root = root.path().string();
    test::service service(host, store, config);
    service.open("a");
    host->place_of("a")->alive = false;
    BOOST_TEST(
        service.get(service.sessions().run("a", program('a', {"true"}), nullptr))->end.exit_code.value() ==
        0);
    BOOST_TEST(host->builds == 2);
    // Found dead when the command was to start: nothing has started, so it is tried again (N16.3).
    host->dead_on_arrival = true;
    BOOST_TEST(
        service.get(service.sessions().run("a", program('b', {"true"}), nullptr))->end.exit_code.value() ==
        0);
    BOOST_TEST(host->builds == 3);
}

BOOST_AUTO_TEST_CASE(a_sandbox_that_dies_under_a_command_is_gone_for_run_and_an_error_for_exec) {
    test::service service(host, store);
    service.open("a");
    const auto run = service.start(service.sessions().run("a", program('a', {"hang"}), nullptr));
    const auto exec = service.start(service.sessions().exec("a", {"hang", std::nullopt}, nullptr));
    service.until([this] { return host->commands == 2; });
    host->place_of("a")->alive = false;
    const auto ended = service.ready(run);
    CHECK_ERROR(ended, errc::gone, "The sandbox of session a ended while the command ran");
    const auto shown = service.ready(exec);
    BOOST_REQUIRE(shown.has_value());
    BOOST_TEST(shown->output == "Error: the sandbox has ended");
    BOOST_TEST(shown->end.exit_code.value() == 1);
    std::set<std::string> details;
    const auto log = service.get(service.sessions().events("a", 0));
    for (const auto& each : log->events) {
        details.insert(each.op + ": " + each.detail);
    }
    BOOST_TEST(details == (std::set<std::string>{"exec: exit 1", "run: sandbox gone"}),
               boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_heal_that_fails_leaves_the_session_as_it_was) {
    test::service service(host, store);
    service.open("a");
    host->place_of("a")->alive = false;
    host->fail_builds = true;
    const auto failed = service.get(service.sessions().exec("a", {"true", std::nullopt}, nullptr));
    CHECK_ERROR(failed, errc::start_failed, "The sandbox could not be started: the daemon is on strike");
    const auto info = service.get(service.sessions().inspect("a", false));
    BOOST_REQUIRE(info.has_value());
    BOOST_TEST(!info->alive);
    BOOST_TEST(!info->hibernated);
    BOOST_TEST(service.events("a", 0).events.empty());
    host->fail_builds = false;
    BOOST_TEST(service.exec("a", "echo back").output == "back\n");
    BOOST_TEST(host->places().size() == 1U);
}

BOOST_AUTO_TEST_CASE(a_close_during_a_heal_wins) {
    test::service service(host, store);
    service.open("a");
    host->place_of("a")->alive = false;
    host->hold_builds = true;
    const auto exec = service.start(service.sessions().exec("a", {"true", std::nullopt}, nullptr));
    service.until([this] { return host->builds == 2; });
    const auto closed = service.start(service.sessions().close("a", false));
    BOOST_TEST(service.ready(exec)->output == "Error: Session a was closed");
    host->hold_builds = false;
    BOOST_TEST(service.ready(closed).has_value());
    service.until([this] { return host->places().empty(); });
    const auto kept = test::get(service.context(), store->load());
    BOOST_TEST(kept->sessions.empty());
    BOOST_TEST(kept->slots.empty());
}

BOOST_AUTO_TEST_CASE(activity_is_the_start_of_a_command_and_nothing_else) {
    test::service service(host, store);
    service.open("a");
    service.clock().advance(10s);
    BOOST_TEST(service.get(service.sessions().inspect("a", true))->idle_seconds == 10.0);
    service.exec("a", "true");
    const auto info = service.get(service.sessions().inspect("a", false));
    BOOST_TEST(info->idle_seconds == 0.0);
    BOOST_TEST(info->last_activity == 1'700'000'010.5);
    service.clock().step_wall(-3600); // somebody sets the clock: nobody has been active because of it
    BOOST_TEST(service.get(service.sessions().inspect("a", false))->idle_seconds == 0.0);
}

BOOST_AUTO_TEST_CASE(the_log_keeps_the_last_200_and_counts_on) {
    test::service service(host, store);
    service.open("a");
    BOOST_TEST(service.events("a", 0).latest_seq == 0);
    for (int i = 1; i <= 225; ++i) {
        service.exec("a", i == 225 ? "exit 3 " + std::string(300, 'x') : "true");
    }
    const auto page = service.get(service.sessions().events("a", 0));
    BOOST_REQUIRE(page->events.size() == 200U);
    BOOST_TEST(page->events.front().seq == 26);
    BOOST_TEST(page->latest_seq == 225);
    const auto last = service.get(service.sessions().events("a", 224));
    BOOST_REQUIRE(last->events.size() == 1U);
    BOOST_TEST(last->events[0].op == "exec");
    BOOST_TEST(last->events[0].target == "exit 3 " + std::string(193, 'x') + "…");
    BOOST_TEST(!last->events[0].ok);
    BOOST_TEST(last->events[0].detail == "exit 3");
    BOOST_TEST(last->events[0].at == 1'700'000'000.5);
    BOOST_TEST(service.get(service.sessions().events("b", 0)).has_error());
}

BOOST_AUTO_TEST_SUITE_END()
