// run, stop and the ends that are no plain exit, over the real agent.

#include "agent_fixture.hpp"
#include "come_so_far.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <csignal>

using namespace sandboxd;
using namespace std::chrono_literals;

BOOST_FIXTURE_TEST_SUITE(agent_run, test::agent_fixture)

BOOST_AUTO_TEST_CASE(the_streams_are_apart_and_arguments_literal) {
    const auto done = run({"sh", "-c", "echo \"$1\"; echo err >&2; exit 5", "x", "a b; $(c)"}).value();
    BOOST_TEST(done.out == "a b; $(c)\n");
    BOOST_TEST(done.err == "err\n");
    BOOST_TEST(done.status.exit_code.value() == 5);
    BOOST_TEST(!done.output_limited);
}

BOOST_AUTO_TEST_CASE(what_can_not_be_started_is_a_result_as_in_a_shell) {
    const auto missing = run({"no-such-program"}).value();
    BOOST_TEST(missing.status.exit_code.value() == 127);
    BOOST_TEST(missing.out.empty());
    BOOST_TEST(missing.err.starts_with("sandboxd: "));
    BOOST_TEST(missing.err.ends_with("\n"));
    BOOST_TEST(run({""}).value().status.exit_code.value() == 127);
    BOOST_TEST(run({"/etc"}).value().status.exit_code.value() == 126);
    BOOST_TEST(run({"/etc/passwd"}).value().status.exit_code.value() == 126);
    BOOST_TEST((run({}).error().code == errc::invalid));
}

BOOST_AUTO_TEST_CASE(the_limit_is_of_both_streams_together_and_exact) {
    const auto exact =
        run({"sh", "-c", "head -c 60000 /dev/zero; head -c 40000 /dev/zero >&2"}, 20s, 100'000);
    BOOST_TEST(!exact.value().output_limited);
    BOOST_TEST(exact.value().out.size() == 60'000U);
    BOOST_TEST(exact.value().err.size() == 40'000U);
    BOOST_TEST(exact.value().status.exit_code.value() == 0);
    const auto over =
        run({"sh", "-c", "head -c 70000 /dev/zero; head -c 30001 /dev/zero >&2; sleep 60"}, 20s, 100'000);
    BOOST_TEST(over.value().output_limited);
    BOOST_TEST(!over.value().status.exit_code);
    BOOST_TEST(!over.value().status.signal);
    BOOST_TEST(over.value().out.size() == 65'536U);
    BOOST_TEST(over.value().err.size() <= 30'000U);
    BOOST_TEST(descendants() == 0);
}

BOOST_AUTO_TEST_CASE(a_deadline_keeps_64_KiB_of_each_stream) {
    run_result late;
    for (const auto limit : test::come_so_far) {
        late = run({"sh", "-c", "head -c 100000 /dev/zero; echo e >&2; sleep 60"}, limit).value();
        if (late.err == "e\n") {
            break;
        }
    }
    BOOST_TEST(late.status.timed_out);
    BOOST_TEST(!late.status.exit_code);
    BOOST_TEST(late.out.size() == 65'536U);
    BOOST_TEST(late.err == "e\n");
    BOOST_TEST(late.status.output_dropped_bytes == 100'000U - 65'536U);
}

BOOST_AUTO_TEST_CASE(a_stop_that_takes_too_long_answers_with_the_output_so_far) {
    options.answer_grace = 300ms; // the agent gives a command 2 s between TERM and KILL
    restart();
    const std::string stubborn = "trap '' TERM; echo up; while :; do sleep 0.1; done";
    exec_result exec_end;
    for (const auto limit : test::come_so_far) {
        exec_end = exec(stubborn, 3, limit).value();
        if (exec_end.status.overdue) {
            break;
        }
    }
    BOOST_TEST(exec_end.status.timed_out);
    BOOST_TEST(exec_end.status.overdue);
    BOOST_TEST(exec_end.output == "up\n");
    BOOST_TEST(exec_end.truncated);
    run_result run_end;
    for (const auto limit : test::come_so_far) {
        run_end = run({"sh", "-c", stubborn}, limit).value();
        if (run_end.status.overdue) {
            break;
        }
    }
    BOOST_TEST(run_end.status.overdue);
    BOOST_TEST(run_end.out == "up\n");
    BOOST_TEST(!run_end.status.exit_code);
    until([&] { return descendants() == 0; });
}

BOOST_AUTO_TEST_CASE(a_stop_ends_the_whole_tree_and_the_id_is_taken_until_then) {
    const auto id = test::fresh_id();
    std::optional<result<exec_result>> first;
    start("echo on; setsid sleep 66 & sleep 66", first, id);
    until([&] { return descendants() >= 2; });
    auto again = test::exec_of("true", 10, 1s);
    again.run_id = id;
    const auto refused = test::get(context, box->exec(std::move(again)));
    BOOST_TEST((refused.error().code == errc::exists));
    BOOST_TEST(!refused.error().may_have_started);
    test::run(context, box->stop_run(id));
    BOOST_TEST(descendants() == 0);
    until([&] { return first.has_value(); });
    BOOST_TEST(first->value().status.stopped);
    BOOST_TEST(first->value().output == "on\n");
    BOOST_TEST(!first->value().status.exit_code);
    test::run(context, box->stop_run(id));
    test::run(context, box->stop_run("no run id"));
}

BOOST_AUTO_TEST_CASE(out_of_memory_is_told_only_with_evidence) {
    std::optional<result<exec_result>> killed;
    start(held("kill -9 $$"), killed);
    until([&] { return descendants() >= 1; });
    host->pretend_oom_kills(1);
    let_go();
    until([&] { return killed.has_value(); });
    BOOST_TEST(killed->value().status.oom_killed);
    BOOST_TEST(killed->value().status.signal.value() == SIGKILL);
    BOOST_TEST(!exec("kill -9 $$").value().status.oom_killed);
    BOOST_TEST(!exec("exit 137").value().status.oom_killed);
}

BOOST_AUTO_TEST_CASE(a_background_child_does_not_hold_the_answer) {
    BOOST_TEST(exec("sleep 444 & echo hi").value().output ==
               "hi\n"); // or it would run out of the test's time
    BOOST_TEST(exec("echo next").value().output == "next\n");
    BOOST_TEST(descendants() == 1);
}

BOOST_AUTO_TEST_CASE(many_at_once_all_answer) {
    std::vector<std::optional<result<exec_result>>> answers(64);
    for (std::size_t i = 0; i < answers.size(); ++i) {
        start("sleep 0.1; echo " + std::to_string(i), answers[i]);
    }
    until([&] {
        return std::all_of(answers.begin(), answers.end(), [](const auto& one) { return one.has_value(); });
    });
    for (std::size_t i = 0; i < answers.size(); ++i) {
        BOOST_TEST(answers[i]->value().output == std::to_string(i) + "\n");
    }
}

BOOST_AUTO_TEST_CASE(a_flood_starves_nobody) {
    std::optional<result<exec_result>> flood;
    start("head -c 1000000000 /dev/zero", flood);
    for (int i = 0; i < 20; ++i) {
        BOOST_TEST(exec("echo " + std::to_string(i)).value().output == std::to_string(i) + "\n");
    }
    until([&] { return flood.has_value(); });
    BOOST_TEST(flood->value().output.size() == 100'000U);
    BOOST_TEST(flood->value().status.output_dropped_bytes == 1'000'000'000U - 100'000U);
    BOOST_TEST(flood->value().status.exit_code.value() == 0);
}

BOOST_AUTO_TEST_CASE(the_death_of_the_sandbox_is_told_at_once) {
    int deaths = 0;
    box->on_death([&] { ++deaths; });
    std::optional<result<exec_result>> running;
    start("sleep 200", running);
    until([&] { return descendants() >= 1; });
    ::kill(host->pid(), SIGKILL);
    until([&] { return running.has_value(); });
    BOOST_TEST((running->error().code == errc::gone));
    BOOST_TEST(running->error().may_have_started);
    BOOST_TEST(!box->alive());
    BOOST_TEST(deaths == 1);
    const auto after = exec("true");
    BOOST_TEST((after.error().code == errc::gone));
    BOOST_TEST(!after.error().may_have_started);
}

BOOST_AUTO_TEST_CASE(a_stop_of_the_sandbox_ends_what_runs_with_gone) {
    int deaths = 0;
    box->on_death([&] { ++deaths; });
    std::optional<result<exec_result>> running;
    start("sleep 33", running);
    until([&] { return descendants() >= 1; });
    test::run(context, box->stop(false));
    BOOST_TEST((running->error().code == errc::gone));
    BOOST_TEST(!host->alive());
    BOOST_TEST(deaths == 0);
    test::run(context, box->stop(false));
}

BOOST_AUTO_TEST_SUITE_END()
