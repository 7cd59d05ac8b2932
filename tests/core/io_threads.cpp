#include "core/io_threads.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/test/unit_test.hpp>

#include <sys/resource.h>

#include <atomic>
#include <functional>
#include <set>
#include <thread>

using namespace sandboxd;
using namespace std::chrono_literals;

namespace {
constexpr core::io_thread_rules quick{.look = 2ms, .stay = 5ms, .busy = 0.6};

void spin_until(const std::atomic<bool>& flag) {
    const auto limit = std::chrono::steady_clock::now() + 180s;
    while (!flag && std::chrono::steady_clock::now() < limit) {
    }
}
} // namespace

namespace {
/// The threads that a hundred small pieces of work ran on.
std::set<std::thread::id> threads_of_light_work() {
    boost::asio::io_context context(4);
    std::set<std::thread::id> seen;
    boost::asio::steady_timer timer(context);
    int left = 100;
    std::function<void()> again = [&] {
        seen.insert(std::this_thread::get_id());
        if (--left > 0) {
            timer.expires_after(1ms);
            timer.async_wait([&](boost::system::error_code) { again(); });
        }
    };
    boost::asio::post(context, again);
    core::run_context(context, 4, {.look = 50ms, .stay = 5ms, .busy = 0.9});
    BOOST_TEST(left == 0);
    return seen;
}
} // namespace

BOOST_AUTO_TEST_CASE(light_work_stays_on_the_calling_thread) {
    // Where the machine is overloaded a thread that waits for a processor counts as busy: then once more.
    std::set<std::thread::id> seen;
    for (int i = 0; i < 20 && seen.size() != 1; ++i) {
        seen = threads_of_light_work();
    }
    BOOST_TEST_REQUIRE(seen.size() == 1U);
    BOOST_TEST((*seen.begin() == std::this_thread::get_id()));
}

namespace {
/// Makes a second thread join, then does a hundred small pieces of work. The threads of their second half.
std::set<std::thread::id> threads_after_a_burst() {
    boost::asio::io_context context(4);
    std::set<std::thread::id> seen;
    std::atomic<bool> joined{false};
    boost::asio::steady_timer timer(context);
    int left = 100;
    std::function<void()> again = [&] {
        if (left <= 50) {
            seen.insert(std::this_thread::get_id());
        }
        if (--left > 0) {
            timer.expires_after(1ms);
            timer.async_wait([&](boost::system::error_code) { again(); });
        }
    };
    boost::asio::post(context, [&] {
        spin_until(joined); // ends only on another thread
        boost::asio::post(context, again);
    });
    boost::asio::post(context, [&] { joined = true; });
    core::run_context(context, 2, {.look = 20ms, .stay = 5ms, .longest_stay = 10ms, .busy = 0.9});
    BOOST_TEST(joined);
    BOOST_TEST(left == 0);
    return seen;
}
} // namespace

BOOST_AUTO_TEST_CASE(a_thread_that_joined_leaves_when_the_work_is_light_again) {
    std::set<std::thread::id> seen;
    for (int i = 0; i < 20 && seen.size() != 1; ++i) {
        seen = threads_after_a_burst();
    }
    BOOST_TEST_REQUIRE(seen.size() == 1U);
    BOOST_TEST((*seen.begin() == std::this_thread::get_id()));
}

BOOST_AUTO_TEST_CASE(a_busy_thread_gets_help_and_so_do_two) {
    boost::asio::io_context context(4);
    std::atomic<bool> first{false};
    std::atomic<bool> second{false};
    std::atomic<bool> third{false};
    // Each can end only on a thread of its own.
    boost::asio::post(context, [&] { spin_until(first); });
    boost::asio::post(context, [&] {
        boost::asio::post(context, [&] {
            third = true;
            second = true;
            first = true;
        });
        spin_until(second);
    });
    core::run_context(context, 3, quick);
    BOOST_TEST(third);
}

// Thousands of sessions may be asleep on a small host: an idle service wakes up seldom.
BOOST_AUTO_TEST_CASE(idle_threads_are_looked_at_less_and_less_often) {
    boost::asio::io_context context(2);
    boost::asio::steady_timer timer(context, 1s);
    timer.async_wait([](boost::system::error_code) {});
    const auto switches = [] {
        rusage usage{};
        BOOST_REQUIRE(::getrusage(RUSAGE_SELF, &usage) == 0);
        return usage.ru_nvcsw;
    };
    const auto before = switches();
    core::run_context(context, 2, {.look = 1ms, .longest_look = 100ms, .stay = 5ms, .busy = 0.9});
    BOOST_TEST(switches() - before < 200); // a thousand looks without the longer pauses
}

BOOST_AUTO_TEST_CASE(one_thread_runs_everything_where_one_is_asked_for) {
    boost::asio::io_context context(1);
    int ran = 0;
    for (int i = 0; i < 10; ++i) {
        boost::asio::post(context, [&] { ++ran; });
    }
    core::run_context(context, 1, quick);
    BOOST_TEST(ran == 10);
}

BOOST_AUTO_TEST_CASE(a_stopped_context_lets_all_threads_go) {
    boost::asio::io_context context(3);
    const auto work = boost::asio::make_work_guard(context);
    boost::asio::steady_timer timer(context, 20ms);
    timer.async_wait([&](boost::system::error_code) { context.stop(); });
    core::run_context(context, 3, quick);
    BOOST_TEST(context.stopped());
}
