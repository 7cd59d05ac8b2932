#include "core/deadline.hpp"
#include "core/spawn.hpp"
#include "sandbox/memory/builder.hpp"
#include "support/run.hpp"

#include <boost/test/unit_test.hpp>

using namespace sandboxd;
using namespace sandboxd::sandboxes;
using namespace std::chrono_literals;

namespace {

struct fixture {
    boost::asio::io_context context;
    std::shared_ptr<memory::memory_builder> builder = memory::create_memory_builder();
    core::gate background;
    slot_record slot;
    std::shared_ptr<sandbox> box = build("s1");

    std::shared_ptr<sandbox> build(std::string session) {
        sandbox_spec spec;
        spec.session_id = std::move(session);
        spec.image = "host";
        spec.env = {{"BASE", "1"}};
        slot = test::get(context, builder->prepare(spec)).value();
        return test::get(context, builder->build(spec, slot)).value();
    }

    static std::string id(int n) { return std::string(31, '0') + static_cast<char>('0' + n); }

    exec_result exec(std::string command, std::size_t cap = 100'000,
                     std::chrono::milliseconds timeout = 10s) {
        return test::get(context, box->exec({id(1), std::move(command), timeout, cap})).value();
    }
    run_result run(std::vector<std::string> argv, std::chrono::milliseconds timeout = 10s) {
        run_request request;
        request.run_id = id(1);
        request.argv = std::move(argv);
        request.env = {{"MORE", "2"}};
        request.timeout = timeout;
        request.output_limit = 100;
        request.kept_when_stopped = 10;
        return test::get(context, box->run(std::move(request))).value();
    }
};

task<void> collect(std::shared_ptr<sandbox> box, std::string command,
                   std::optional<result<exec_result>>& to) {
    exec_request request;
    request.run_id = fixture::id(1);
    request.command = std::move(command);
    request.timeout = std::chrono::seconds(20);
    to.emplace(co_await box->exec(std::move(request)));
}

task<void> second_id(std::shared_ptr<sandbox> box, std::optional<result<exec_result>>& to) {
    co_await collect(box, "true", to);
    co_await box->stop_run(fixture::id(1));
}

} // namespace

BOOST_FIXTURE_TEST_SUITE(memory_sandbox, fixture)

BOOST_AUTO_TEST_CASE(a_script_says_what_a_shell_would) {
    const auto done = exec("echo 'a  b' c; false || echo no; true && echo -n yes >&2; exit 3; echo never");
    BOOST_TEST(done.output == "a  b c\nno\nyes");
    BOOST_TEST(done.status.exit_code.value() == 3);
    BOOST_TEST(!done.truncated);
    BOOST_TEST(exec("nosuch").status.exit_code.value() == 127);
    BOOST_TEST(exec("cat").output.empty());
    BOOST_TEST(exec("").status.exit_code.value() == 0);
    BOOST_TEST(exec("sh -c 'exit 7'").status.exit_code.value() == 7);
    const auto killed = exec("kill -9 $$");
    BOOST_TEST(killed.status.signal.value() == 9);
    BOOST_TEST(!killed.status.exit_code);
}

BOOST_AUTO_TEST_CASE(output_is_cut_at_the_cap_and_counted) {
    const auto exact = exec("head -c 10 /dev/zero", 10);
    BOOST_TEST(exact.output == std::string(10, '\0'));
    BOOST_TEST(!exact.truncated);
    const auto over = exec("head -c 11 /dev/zero", 10);
    BOOST_TEST(over.output.size() == 10U);
    BOOST_TEST(over.truncated);
    BOOST_TEST(over.status.output_dropped_bytes == 1U);
}

BOOST_AUTO_TEST_CASE(run_keeps_the_streams_apart_and_stops_at_its_limit) {
    const auto apart = run({"sh", "-c", "echo out; echo err >&2"});
    BOOST_TEST(apart.out == "out\n");
    BOOST_TEST(apart.err == "err\n");
    BOOST_TEST(run({"env"}).out == "BASE=1\nMORE=2\n");
    BOOST_TEST(!run({"head", "-c", "100", "/dev/zero"}).output_limited);
    const auto limited = run({"head", "-c", "101", "/dev/zero"});
    BOOST_TEST(limited.output_limited);
    BOOST_TEST(limited.out.size() == 10U);
    BOOST_TEST(!limited.status.exit_code);
    const auto late = run({"sleep", "9"}, 20ms);
    BOOST_TEST(late.status.timed_out);
    BOOST_TEST(!late.status.exit_code);
}

BOOST_AUTO_TEST_CASE(a_running_command_is_stopped_and_its_id_is_taken) {
    std::optional<result<exec_result>> first;
    std::optional<result<exec_result>> second;
    core::spawn(context.get_executor(), "first", background, collect(box, "echo hi; sleep 9", first));
    test::run(context, second_id(box, second));
    context.run();
    BOOST_TEST((second->error().code == errc::exists));
    BOOST_TEST(first->value().status.stopped);
    BOOST_TEST(first->value().output == "hi\n");
    BOOST_TEST(!first->value().status.exit_code);
}

BOOST_AUTO_TEST_CASE(a_death_is_told_once_and_ends_what_runs) {
    int deaths = 0;
    box->on_death([&] { ++deaths; });
    std::optional<result<exec_result>> running;
    core::spawn(context.get_executor(), "running", background, collect(box, "sleep 9", running));
    context.restart();
    context.poll();
    BOOST_TEST(builder->kill("s1"));
    BOOST_TEST(!builder->kill("s1"));
    context.restart();
    context.run();
    BOOST_TEST(deaths == 1);
    BOOST_TEST((running->error().code == errc::gone));
    BOOST_TEST(running->error().may_have_started);
    BOOST_TEST(!box->alive());
    const auto after = test::get(context, box->exec({id(2), "true", 1s, 10}));
    BOOST_TEST((after.error().code == errc::gone));
    BOOST_TEST(!after.error().may_have_started);
    box->on_death([&] { ++deaths; });
    BOOST_TEST(deaths == 1);
}

BOOST_AUTO_TEST_CASE(the_builder_fails_on_request_and_finds_its_sandboxes_again) {
    builder->fail_next_build("no luck");
    sandbox_spec spec;
    spec.session_id = "s2";
    const auto other = test::get(context, builder->prepare(spec)).value();
    const auto failed = test::get(context, builder->build(spec, other));
    BOOST_TEST((failed.error().code == errc::start_failed));
    BOOST_TEST(failed.error().message == "no luck");
    BOOST_TEST(builder->builds() == 1U);
    box.reset();
    auto again = test::get(context, builder->adopt(slot)).value();
    BOOST_TEST(again->alive());
    BOOST_TEST(test::get(context, builder->owned()).value().size() == 1U);
    test::run(context, again->stop(true));
    BOOST_TEST(builder->stops() == 1U);
    BOOST_TEST(builder->purges() == 1U);
    BOOST_TEST(builder->living() == 0U);
    BOOST_TEST((test::get(context, builder->adopt(slot)).error().code == errc::gone));
    BOOST_TEST(test::get(context, builder->remove(slot)).has_value());
    BOOST_TEST(test::get(context, builder->owned()).value().empty());
}

BOOST_AUTO_TEST_SUITE_END()
