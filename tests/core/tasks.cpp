// spawn, gate, deadline, offload.

#include "core/clock.hpp"
#include "core/deadline.hpp"
#include "core/fd.hpp"
#include "core/gate.hpp"
#include "core/log.hpp"
#include "core/offload.hpp"
#include "core/spawn.hpp"
#include "support/run.hpp"

#include <boost/asio/strand.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <fcntl.h>
#include <stdexcept>
#include <thread>

using namespace sandboxd;
using namespace std::chrono_literals;
namespace asio = boost::asio;

namespace {

task<void> sleep_long(bool& slept) {
    slept = co_await core::sleep_for(1h);
}

task<int> answer_after(std::chrono::milliseconds time, bool& ended) {
    const bool slept = co_await core::sleep_for(time);
    ended = true;
    co_return slept ? 42 : -1;
}

task<int> never_default(std::unique_ptr<int> value) {
    co_return *value;
}

task<int> wait_for(core::event& flag) {
    co_await flag.wait();
    co_return 1;
}

task<void> wait_an_hour(core::event& flag, bool& aborted) {
    try {
        (void)co_await core::with_timeout(wait_for(flag), 1h);
    } catch (const boost::system::system_error& e) {
        aborted = e.code() == asio::error::operation_aborted;
    }
}

task<void> throw_something() {
    co_await core::sleep_for(0ms);
    throw std::runtime_error("deliberate");
}

task<void> throw_aborted() {
    co_await core::sleep_for(0ms);
    throw boost::system::system_error(asio::error::operation_aborted);
}

} // namespace

BOOST_AUTO_TEST_CASE(a_sleep_ends_early_when_cancelled) {
    asio::io_context context;
    core::gate inside;
    auto signal = std::make_shared<asio::cancellation_signal>();
    bool slept = true;
    core::spawn(context.get_executor(), "test", inside, sleep_long(slept), signal);
    context.poll();
    BOOST_TEST(inside.inside() == 1U);
    signal->emit(asio::cancellation_type::terminal);
    context.restart();
    context.run_for(60s);
    BOOST_TEST(!slept);
    BOOST_TEST(inside.inside() == 0U);
}

BOOST_AUTO_TEST_CASE(with_timeout_gives_the_answer_or_ends_the_work) {
    asio::io_context context;
    bool ended = false;
    auto quick = test::get(context, core::with_timeout(answer_after(1ms, ended), 10s));
    BOOST_TEST((quick == std::optional<int>(42)));
    ended = false;
    auto slow = test::get(context, core::with_timeout(answer_after(1h, ended), 5ms));
    BOOST_TEST(!slow.has_value());
    BOOST_TEST(ended); // the work has ended when with_timeout returns
    auto moved = test::get(context, core::with_timeout(never_default(std::make_unique<int>(7)), 10s));
    BOOST_TEST((moved == std::optional<int>(7)));
}

BOOST_AUTO_TEST_CASE(a_cancelled_wait_is_no_deadline) {
    asio::io_context context;
    core::gate inside;
    core::event flag(context.get_executor());
    auto signal = std::make_shared<asio::cancellation_signal>();
    bool aborted = false;
    core::spawn(context.get_executor(), "test", inside, wait_an_hour(flag, aborted), signal);
    context.poll();
    signal->emit(asio::cancellation_type::terminal);
    context.restart();
    context.run_for(60s);
    BOOST_TEST(aborted);
    BOOST_TEST(inside.inside() == 0U);
}

BOOST_AUTO_TEST_CASE(an_exception_that_escapes_is_counted_and_an_abort_is_not) {
    asio::io_context context;
    core::gate inside;
    const auto before = core::escaped_exceptions();
    core::log::set_level("error");
    core::spawn(context.get_executor(), "a deliberate failure", inside, throw_something());
    core::spawn(context.get_executor(), "a deliberate abort", inside, throw_aborted());
    context.run_for(60s);
    BOOST_TEST(core::escaped_exceptions() == before + 1);
    BOOST_TEST(inside.inside() == 0U);
}

BOOST_AUTO_TEST_CASE(nothing_is_spawned_through_a_closed_gate) {
    asio::io_context context;
    core::gate inside;
    inside.close();
    bool slept = true;
    BOOST_TEST(!core::spawn(context.get_executor(), "test", inside, sleep_long(slept)));
    context.run_for(60s);
    BOOST_TEST(slept);
}

BOOST_AUTO_TEST_CASE(a_pass_moves_and_leaves_once) {
    core::gate gate;
    auto first = gate.enter();
    core::gate::pass second = std::move(first);
    BOOST_TEST(gate.inside() == 1U);
    BOOST_TEST(!first); // NOLINT: empty after the move, as promised
    second = gate.enter();
    BOOST_TEST(gate.inside() == 1U);
    second = {};
    BOOST_TEST(gate.inside() == 0U);
    gate.close();
    BOOST_TEST(!gate.enter());
}

BOOST_AUTO_TEST_CASE(several_wait_for_a_gate_to_drain) {
    asio::io_context context;
    core::gate gate;
    core::gate waiters;
    auto pass = gate.enter();
    core::spawn(context.get_executor(), "test", waiters, gate.drained());
    core::spawn(context.get_executor(), "test", waiters, gate.drained());
    context.poll();
    pass = {};
    context.restart();
    context.poll();
    BOOST_TEST(waiters.inside() == 2U); // empty, but not closed
    gate.close();
    context.restart();
    context.run_for(60s);
    BOOST_TEST(waiters.inside() == 0U);
}

namespace {
task<std::thread::id> thread_of_work(core::worker_pool& pool) {
    co_return co_await pool.run([] { return std::this_thread::get_id(); });
}

task<std::thread::id> thread_of_sized(core::worker_pool& pool, std::size_t bytes) {
    co_return co_await pool.run_sized(bytes, [] { return std::this_thread::get_id(); });
}

task<int> nothing_of_size(core::worker_pool& pool, std::size_t bytes) {
    int done = 0;
    co_await pool.run_sized(bytes, [&done] { ++done; });
    co_return done;
}

task<std::thread::id> thread_after_work(core::worker_pool& pool) {
    co_await pool.run([] {});
    co_return std::this_thread::get_id();
}

task<std::string> failure_of_work(core::worker_pool& pool) {
    try {
        co_await pool.run([]() -> int { throw std::runtime_error("deliberate"); });
    } catch (const std::runtime_error& e) {
        co_return e.what();
    }
    co_return "";
}

task<std::unique_ptr<int>> moved_work(core::worker_pool& pool) {
    auto input = std::make_unique<int>(5);
    co_return co_await pool.run([input = std::move(input)]() mutable { return std::move(input); });
}

task<void> work_and_tell(core::worker_pool& pool, std::atomic<bool>& go, std::atomic<bool>& done) {
    co_await pool.run([&] {
        while (!go) {
            std::this_thread::sleep_for(1ms);
        }
        done = true;
    });
}
} // namespace

BOOST_AUTO_TEST_CASE(offloaded_work_runs_on_the_pool_and_comes_home) {
    asio::io_context context;
    core::worker_pool pool("test", 2);
    BOOST_TEST((test::get(context, thread_of_work(pool)) != std::this_thread::get_id()));
    BOOST_TEST((test::get(context, thread_after_work(pool)) == std::this_thread::get_id()));
    BOOST_TEST(test::get(context, failure_of_work(pool)) == "deliberate");
    BOOST_TEST(*test::get(context, moved_work(pool)) == 5);
}

BOOST_AUTO_TEST_CASE(only_work_over_many_bytes_goes_to_the_pool) {
    asio::io_context context;
    core::worker_pool pool("test", 1);
    const auto most = core::worker_pool::most_at_once;
    const auto here = std::this_thread::get_id();
    BOOST_TEST((test::get(context, thread_of_sized(pool, 0)) == here));
    BOOST_TEST((test::get(context, thread_of_sized(pool, most)) == here));
    BOOST_TEST((test::get(context, thread_of_sized(pool, most + 1)) != here));
    BOOST_TEST(test::get(context, nothing_of_size(pool, 1)) == 1);
    BOOST_TEST(test::get(context, nothing_of_size(pool, 10 * most)) == 1);
}

BOOST_AUTO_TEST_CASE(cancelling_who_waits_for_offloaded_work_does_not_leave_it_behind) {
    asio::io_context context;
    core::gate inside;
    core::worker_pool pool("test", 1);
    auto signal = std::make_shared<asio::cancellation_signal>();
    std::atomic<bool> go{false};
    std::atomic<bool> done{false};
    core::spawn(context.get_executor(), "test", inside, work_and_tell(pool, go, done), signal);
    context.poll();
    signal->emit(asio::cancellation_type::terminal);
    context.restart();
    context.poll();
    BOOST_TEST(inside.inside() == 1U); // its frame is in use until the work has ended
    go = true;
    context.restart();
    context.run_for(60s);
    BOOST_TEST(done);
    BOOST_TEST(inside.inside() == 0U);
}

BOOST_AUTO_TEST_CASE(a_manual_clock_moves_when_told) {
    const auto clock = core::create_manual_clock(1000.5);
    const auto steady = clock->steady();
    clock->advance(1500ms);
    BOOST_TEST((clock->steady() - steady == 1500ms));
    BOOST_TEST(clock->wall() == 1002.0);
    clock->step_wall(-2.0);
    BOOST_TEST(clock->wall() == 1000.0);
    BOOST_TEST((clock->steady() - steady == 1500ms));
    BOOST_TEST(core::system_clock()->wall() > 1.7e9);
}

BOOST_AUTO_TEST_CASE(a_descriptor_is_closed_once) {
    int raw = -1;
    {
        core::unique_fd one(::open("/dev/null", O_RDONLY | O_CLOEXEC));
        raw = one.get();
        core::unique_fd two(std::move(one));
        BOOST_TEST(!one); // NOLINT: empty after the move, as promised
        BOOST_TEST(two.get() == raw);
        auto& same = two;
        two = std::move(same);
        BOOST_TEST(two.get() == raw);
        BOOST_TEST(::fcntl(raw, F_GETFD) == FD_CLOEXEC);
    }
    BOOST_TEST(::fcntl(raw, F_GETFD) == -1);
}
