// exec over the real agent.

#include "agent_fixture.hpp"
#include "come_so_far.hpp"

#include <boost/test/unit_test.hpp>

using namespace sandboxd;
using namespace std::chrono_literals;

BOOST_FIXTURE_TEST_SUITE(agent_exec, test::agent_fixture)

BOOST_AUTO_TEST_CASE(a_command_answers_with_its_output_in_the_order_written) {
    const auto done = exec("echo 1; echo 2 >&2; echo 3; exit 4").value();
    BOOST_TEST(done.output == "1\n2\n3\n");
    BOOST_TEST(done.status.exit_code.value() == 4);
    BOOST_TEST(!done.status.signal);
    BOOST_TEST(!done.truncated);
    BOOST_TEST(done.status.output_dropped_bytes == 0U);
    BOOST_TEST(done.status.duration.count() > 0);
}

BOOST_AUTO_TEST_CASE(bytes_come_through_as_they_are) {
    const auto done = exec(R"(printf 'a\0b\r\033[31mc\376')").value();
    BOOST_TEST(done.output == std::string("a\0b\r\033[31mc\376", 11));
}

BOOST_AUTO_TEST_CASE(stdin_is_at_its_end) {
    BOOST_TEST(exec("cat; echo done").value().output == "done\n");
}

BOOST_AUTO_TEST_CASE(the_cap_is_exact_and_the_rest_is_counted) {
    const auto exact = exec("head -c 1000 /dev/zero", 1000).value();
    BOOST_TEST(exact.output == std::string(1000, '\0'));
    BOOST_TEST(!exact.truncated);
    const auto over = exec("head -c 1001 /dev/zero; exit 3", 1000).value();
    BOOST_TEST(over.output == std::string(1000, '\0'));
    BOOST_TEST(over.truncated);
    BOOST_TEST(over.status.output_dropped_bytes == 1U);
    BOOST_TEST(over.status.exit_code.value() == 3);
    const auto nothing = exec("echo x", 0).value();
    BOOST_TEST(nothing.output.empty());
    BOOST_TEST(nothing.truncated);
}

BOOST_AUTO_TEST_CASE(a_large_output_within_its_cap_is_whole) {
    const auto done = exec("yes 0123456789abcde | head -c 8000000", 8'000'000).value();
    BOOST_TEST(done.output.size() == 8'000'000U);
    BOOST_TEST(!done.truncated);
    bool same = true;
    for (std::size_t i = 0; i < done.output.size(); ++i) {
        same = same && done.output[i] == "0123456789abcde\n"[i % 16];
    }
    BOOST_TEST(same);
}

BOOST_AUTO_TEST_CASE(a_deadline_keeps_the_output_so_far_and_leaves_nothing_behind) {
    const auto mark = test::fresh_id();
    exec_result done;
    for (const auto limit : test::come_so_far) {
        done = exec("echo early; setsid sleep 77 & sleep 88; echo " + mark, 100, limit).value();
        if (!done.output.empty()) {
            break;
        }
    }
    BOOST_TEST(done.output == "early\n");
    BOOST_TEST(done.status.timed_out);
    BOOST_TEST(!done.status.exit_code);
    BOOST_TEST(!done.status.signal);
    BOOST_TEST(descendants() == 0);
}

BOOST_AUTO_TEST_CASE(a_signal_is_told_as_one) {
    const auto done = exec("kill -9 $$").value();
    BOOST_TEST(done.status.signal.value() == 9);
    BOOST_TEST(!done.status.exit_code);
    BOOST_TEST(!done.status.oom_killed);
}

BOOST_AUTO_TEST_CASE(a_script_of_any_length_and_an_empty_one) {
    BOOST_TEST(exec("").value().status.exit_code.value() == 0);
    const std::string padding(1'000'000, ' ');
    BOOST_TEST(exec("echo a;" + padding + "echo b").value().output == "a\nb\n");
}

BOOST_AUTO_TEST_CASE(a_nul_is_refused_and_nothing_runs) {
    const auto refused = exec(std::string("echo a\0b", 8));
    BOOST_TEST((refused.error().code == errc::invalid));
}

BOOST_AUTO_TEST_SUITE_END()
