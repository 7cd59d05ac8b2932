#include "core/event.hpp"
#include "core/deadline.hpp"
#include "core/spawn.hpp"
#include "support/run.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

using namespace sandboxd;
using namespace std::chrono_literals;
namespace asio = boost::asio;

namespace {

/// Spawns coroutines that can be cancelled, on one thread.
struct stage {
    asio::io_context context;
    core::gate inside;

    void start(task<void> body, std::shared_ptr<asio::cancellation_signal> signal = {}) {
        BOOST_TEST(core::spawn(context.get_executor(), "test", inside, std::move(body), std::move(signal)));
    }
    /// Runs until nothing is left to do.
    void run() {
        context.restart();
        context.run_for(10s);
        BOOST_TEST(inside.inside() == 0U);
    }
};

template <class Event>
task<void> wait_and_count(Event& one, int& woken) {
    co_await one.wait();
    ++woken;
}

template <class Event>
task<void> wait_or_throw(Event& one, std::string& ended) {
    try {
        co_await one.wait();
        ended = "woken";
    } catch (const boost::system::system_error& e) {
        ended = e.code() == asio::error::operation_aborted ? "cancelled" : "other";
    }
}

template <class Event>
task<void> wait_long_or_throw(Event& one, std::string& ended) {
    try {
        const bool set = co_await one.wait_for(1h);
        ended = set ? "woken" : "late";
    } catch (const boost::system::system_error& e) {
        ended = e.code() == asio::error::operation_aborted ? "cancelled" : "other";
    }
}

template <class Event>
task<bool> wait_briefly(Event& one) {
    co_return co_await one.wait_for(5ms);
}

} // namespace

BOOST_AUTO_TEST_CASE(an_event_wakes_all_who_wait_and_stays_set) {
    stage one;
    core::event event(one.context.get_executor());
    int woken = 0;
    for (int i = 0; i < 3; ++i) {
        one.start(wait_and_count(event, woken));
    }
    one.context.poll();
    BOOST_TEST(woken == 0);
    event.set();
    one.run();
    BOOST_TEST(woken == 3);
    one.start(wait_and_count(event, woken));
    one.run();
    BOOST_TEST(woken == 4);
    event.clear();
    BOOST_TEST(!test::get(one.context, wait_briefly(event)));
}

BOOST_AUTO_TEST_CASE(an_event_that_is_cleared_before_the_waiter_runs_does_not_wake_it) {
    stage one;
    core::event event(one.context.get_executor());
    int woken = 0;
    one.start(wait_and_count(event, woken));
    one.context.poll();
    event.set();
    event.clear();
    one.context.restart();
    one.context.poll();
    BOOST_TEST(woken == 0);
    event.set();
    one.run();
    BOOST_TEST(woken == 1);
}

BOOST_AUTO_TEST_CASE(a_wait_with_a_limit_tells_which_came_first) {
    asio::io_context context;
    core::event event(context.get_executor());
    BOOST_TEST(!test::get(context, wait_briefly(event)));
    event.set();
    BOOST_TEST(test::get(context, wait_briefly(event)));
    auto shared = std::make_shared<core::shared_event>();
    BOOST_TEST(!test::get(context, wait_briefly(*shared)));
    shared->set();
    BOOST_TEST(test::get(context, wait_briefly(*shared)));
}

BOOST_AUTO_TEST_CASE(cancellation_does_not_look_like_a_wake_up) {
    stage one;
    core::event event(one.context.get_executor());
    auto shared = std::make_shared<core::shared_event>();
    std::string ended[4];
    std::shared_ptr<asio::cancellation_signal> signals[4];
    for (auto& signal : signals) {
        signal = std::make_shared<asio::cancellation_signal>();
    }
    one.start(wait_or_throw(event, ended[0]), signals[0]);
    one.start(wait_long_or_throw(event, ended[1]), signals[1]);
    one.start(wait_or_throw(*shared, ended[2]), signals[2]);
    one.start(wait_long_or_throw(*shared, ended[3]), signals[3]);
    one.context.poll();
    for (auto& signal : signals) {
        signal->emit(asio::cancellation_type::terminal);
    }
    one.run();
    for (const auto& how : ended) {
        BOOST_TEST(how == "cancelled");
    }
    // The cancelled waits are gone from the events' lists.
    event.set();
    shared->set();
    one.run();
}

BOOST_AUTO_TEST_CASE(a_waiter_that_is_destroyed_leaves_the_list) {
    auto context = std::make_unique<asio::io_context>();
    core::gate inside;
    auto kept = std::make_unique<core::event>(context->get_executor());
    int woken = 0;
    core::spawn(context->get_executor(), "test", inside, wait_and_count(*kept, woken));
    context->poll();
    kept.reset();    // a bug of the owner, but the coroutine below must not touch it
    context.reset(); // destroys the suspended coroutine
    BOOST_TEST(woken == 0);
    BOOST_TEST(inside.inside() == 0U);
}

namespace {
task<void> wait_in_turn(std::shared_ptr<core::shared_event> event, std::atomic<int>& woken) {
    co_await event->wait();
    ++woken;
}
} // namespace

BOOST_AUTO_TEST_CASE(a_shared_event_is_set_and_awaited_from_any_thread_without_a_strand) {
    asio::thread_pool pool(2);
    std::atomic<int> woken{0};
    core::gate inside;
    for (int i = 0; i < 500; ++i) {
        auto event = std::make_shared<core::shared_event>();
        core::spawn(pool.get_executor(), "test", inside, wait_in_turn(event, woken));
        core::spawn(pool.get_executor(), "test", inside, wait_in_turn(event, woken));
        asio::post(pool, [event] { event->set(); });
    }
    pool.join(); // hangs when a wake-up is lost
    BOOST_TEST(woken == 1000);
    BOOST_TEST(inside.inside() == 0U);
}

BOOST_AUTO_TEST_CASE(whoever_sets_a_shared_event_may_be_slower_than_the_waiters_context) {
    // One setter for many contexts, each of which ends as soon as its wait has. Under the sanitizers a timer
    // that outlives its context is noticed.
    std::atomic<int> woken{0};
    std::mutex mutex;
    std::vector<std::shared_ptr<core::shared_event>> given;
    std::jthread setter([&](const std::stop_token& over) {
        while (!over.stop_requested()) {
            std::vector<std::shared_ptr<core::shared_event>> mine;
            {
                const std::lock_guard lock(mutex);
                mine.swap(given);
            }
            for (const auto& one : mine) {
                one->set();
            }
        }
    });
    for (int i = 0; i < 2000; ++i) {
        auto event = std::make_shared<core::shared_event>();
        {
            const std::lock_guard lock(mutex);
            given.push_back(event);
        }
        asio::io_context context;
        test::run(context, wait_in_turn(std::move(event), woken));
    }
    BOOST_TEST(woken == 2000);
}
