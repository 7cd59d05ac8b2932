#pragma once

// Waiting for coroutines on the test's thread.

#include "support/run.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

namespace sandboxd::test {

class on_context {
public:
    boost::asio::io_context& context() { return context_; }

    /// Waits for an answer; the coroutine runs on a strand of its own.
    template <class T>
    T get(task<T> work) {
        return test::get(context_, on_strand(std::move(work)));
    }
    /// Starts it and lets the test go on; take the answer with `ready`.
    template <class T>
    std::shared_ptr<std::optional<T>> start(task<T> work) {
        auto answer = std::make_shared<std::optional<T>>();
        boost::asio::co_spawn(boost::asio::make_strand(context_.get_executor()), std::move(work),
                              [answer](const std::exception_ptr& thrown, T value) {
                                  if (!thrown) {
                                      answer->emplace(std::move(value));
                                  }
                              });
        return answer;
    }
    template <class T>
    T ready(const std::shared_ptr<std::optional<T>>& answer) {
        until([&answer] { return answer->has_value(); });
        return std::move(**answer);
    }
    /// Lets everything go on until the condition holds; fails the test after three minutes,
    /// which no busy machine takes.
    void until(const std::function<bool()>& holds) {
        const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(3);
        bool held = holds();
        while (!held && std::chrono::steady_clock::now() < end) {
            context_.restart();
            context_.run_one_for(std::chrono::milliseconds(5));
            held = holds();
        }
        BOOST_REQUIRE(held);
    }
    /// Lets everything go on for so many turns of 1 ms. Turns, not the clock: a machine that stalls takes
    /// none of them away, and what waits for no longer than that has had its turn too.
    void pass(std::chrono::milliseconds time) {
        for (auto left = time.count(); left > 0; --left) {
            boost::asio::steady_timer turn(context_, std::chrono::milliseconds(1));
            bool over = false;
            turn.async_wait([&over](const boost::system::error_code&) { over = true; });
            context_.restart();
            while (!over) {
                context_.run_one();
            }
        }
        context_.restart();
        context_.poll();
    }
    /// Lets it go on until nothing is left to do, for a minute at most.
    void drain() {
        context_.restart();
        context_.run_for(std::chrono::minutes(1));
    }

private:
    template <class T>
    task<T> on_strand(task<T> work) {
        co_return co_await boost::asio::co_spawn(boost::asio::make_strand(context_.get_executor()),
                                                 std::move(work), boost::asio::use_awaitable);
    }

    boost::asio::io_context context_;
};

} // namespace sandboxd::test
