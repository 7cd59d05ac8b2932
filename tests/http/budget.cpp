// The memory that all connections share: who gets it, and who waits for it.

#include "http/budget.hpp"
#include "core/clock.hpp"
#include "core/deadline.hpp"
#include "core/gate.hpp"
#include "core/spawn.hpp"

#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

using namespace sandboxd;
using namespace std::chrono_literals;
namespace asio = boost::asio;

namespace {

using names = std::vector<std::string>;

task<void> keep_lease(http::memory_budget& budget, std::uint64_t bytes, std::chrono::milliseconds limit,
                      names& order, std::string name,
                      http::memory_budget::order place = http::memory_budget::order::in_turn) {
    auto lease = co_await budget.acquire(bytes, limit, place);
    order.push_back(name + (lease ? " got it" : " did not"));
    if (lease) {
        co_await core::sleep_for(1ms);
    }
}

task<void> keep_present(http::memory_budget& budget, std::uint64_t bytes, names& order, std::string name) {
    const auto lease = co_await budget.acquire_for_present(bytes, 10s, http::memory_budget::order::in_turn);
    order.push_back(name + (lease ? " got it" : " did not"));
}

/// A budget, of which a part is held, and those that come for the rest.
struct line {
    line(std::uint64_t limit, std::uint64_t taken) : budget(limit), held(budget.try_acquire(taken)) {
        BOOST_REQUIRE(held);
    }
    ~line() {
        BOOST_TEST(budget.used() == 0U);
        BOOST_TEST(inside.inside() == 0U);
    }
    void come(task<void> one, std::shared_ptr<asio::cancellation_signal> signal = {}) {
        core::spawn(context.get_executor(), "test", inside, std::move(one), std::move(signal));
    }
    void start(std::uint64_t bytes, std::string name) {
        come(keep_lease(budget, bytes, 10s, order, std::move(name)));
        context.restart();
        context.poll();
    }
    void start_present(std::uint64_t bytes, std::string name) {
        come(keep_present(budget, bytes, order, std::move(name)));
        context.restart();
        context.poll();
    }
    void run() {
        context.restart();
        context.run_for(60s);
    }
    void release_and_run() {
        held->release();
        run();
    }

    asio::io_context context;
    core::gate inside;
    http::memory_budget budget;
    names order; ///< what became of them
    std::optional<http::memory_budget::lease> held;
};

} // namespace

#define CHECK_ORDER(of, ...) BOOST_TEST((of).order == (names{__VA_ARGS__}), boost::test_tools::per_element())

BOOST_AUTO_TEST_CASE(the_budget_serves_in_order_and_takes_back) {
    line of(100, 60);
    of.start(101, "too large");
    of.start(50, "first");
    of.start(10, "second"); // would fit, but is behind the first
    BOOST_TEST(!of.budget.try_acquire(1));
    CHECK_ORDER(of, "too large did not");
    of.release_and_run();
    CHECK_ORDER(of, "too large did not", "first got it", "second got it");
}

BOOST_AUTO_TEST_CASE(a_wait_for_memory_that_is_given_up_lets_others_pass) {
    line of(100, 60);
    auto signal = std::make_shared<asio::cancellation_signal>();
    of.come(keep_lease(of.budget, 80, 10s, of.order, "cancelled"), signal);
    of.come(keep_lease(of.budget, 70, 2s, of.order, "late"));
    of.come(keep_lease(of.budget, 40, 10s, of.order, "small"));
    of.context.poll();
    BOOST_TEST(of.order.empty());
    signal->emit(asio::cancellation_type::terminal);
    of.run();
    CHECK_ORDER(of, "late did not", "small got it");
    of.held->release();
}

BOOST_AUTO_TEST_CASE(who_holds_memory_and_needs_more_never_waits_behind_those_who_wait_for_it) {
    line of(100, 60);
    const auto start = [&](std::uint64_t bytes, std::string name, http::memory_budget::order place) {
        of.come(keep_lease(of.budget, bytes, 10s, of.order, std::move(name), place));
        of.context.restart();
        of.context.poll_one(); // so that no lease ends meanwhile
    };
    using enum http::memory_budget::order;
    start(60, "new", in_turn);
    start(20, "fits", ahead); // at once, and keeps it for a moment
    start(50, "first of all", ahead);
    CHECK_ORDER(of, "fits got it");
    of.release_and_run();
    CHECK_ORDER(of, "fits got it", "first of all got it", "new got it");
}

BOOST_AUTO_TEST_CASE(answers_that_are_there_already_wait_up_to_a_quarter_of_the_budget) {
    line of(100, 90);
    of.start_present(60, "one may be larger");
    of.start_present(1, "behind it");
    CHECK_ORDER(of, "behind it did not");
    of.order.clear();
    of.release_and_run();
    CHECK_ORDER(of, "one may be larger got it");
    of.order.clear();
    of.held = of.budget.try_acquire(90);
    of.start_present(15, "first");
    of.start_present(10, "second");
    of.start_present(1, "one too many");
    CHECK_ORDER(of, "one too many did not");
    of.release_and_run();
    of.start_present(100, "all of it");
    of.run();
    CHECK_ORDER(of, "one too many did not", "first got it", "second got it", "all of it got it");
}

BOOST_AUTO_TEST_CASE(small_requests_pass_those_that_wait_for_much) {
    line of(10 * 1024, 10 * 1024 - 15);
    of.start(16, "large");
    of.start(11, "not so small"); // would fit, but is behind the first
    of.start(10, "small");
    CHECK_ORDER(of, "small got it");
    of.release_and_run();
    CHECK_ORDER(of, "small got it", "large got it", "not so small got it");
}

BOOST_AUTO_TEST_CASE(leases_add_up) {
    http::memory_budget budget(100);
    auto first = budget.try_acquire(30);
    auto second = budget.try_acquire(20);
    first->add(std::move(*second));
    BOOST_TEST(first->bytes() == 50U);
    BOOST_TEST(budget.used() == 50U);
    http::memory_budget::lease empty;
    empty.add(std::move(*first));
    BOOST_TEST(empty.bytes() == 50U);
    empty = {};
    BOOST_TEST(budget.used() == 0U);
}
