#pragma once

#include "core/gate.hpp"
#include "core/log.hpp"
#include "sandboxd/sandbox.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

namespace sandboxd::session {

/// Where an operation of a sandbox is awaited, with a way out. Unlike with_timeout() nothing is cancelled: a
/// sandbox that answers nothing would not answer a cancellation either. Members are used on the waiter's
/// executor, a strand.
template <class T>
struct awaited {
    explicit awaited(const boost::asio::any_io_executor& executor) : timer(executor) {}
    boost::asio::steady_timer timer;
    std::optional<T> answer;
    bool given_up = false;
};

/// What `work` answers; nothing when `until` passed first, or the function handed to `wake_by` was called (on
/// any thread). The work goes on then until its own end, counted by `inside`, and so long `kept` lives. Runs
/// on the awaiting coroutine's executor, which must be a strand; `work` must not throw.
template <class T>
task<std::optional<T>> bounded(core::gate& inside, std::shared_ptr<const void> kept, task<T> work,
                               std::chrono::steady_clock::time_point until,
                               std::function<void(std::function<void()>)> wake_by = {}) {
    const auto executor = co_await boost::asio::this_coro::executor;
    auto state = std::make_shared<awaited<T>>(executor);
    auto pass = inside.enter();
    if (!pass) {
        co_return std::nullopt;
    }
    auto done = [state, kept = std::move(kept), pass = std::move(pass)](const std::exception_ptr& thrown,
                                                                        T answer) {
        if (thrown) {
            core::log::error("an operation of a sandbox ended with an exception");
            state->given_up = true;
        } else {
            state->answer.emplace(std::move(answer));
        }
        state->timer.cancel();
    };
    boost::asio::co_spawn(executor, std::move(work), std::move(done));
    if (wake_by) {
        wake_by([state, executor] {
            boost::asio::post(executor, [state] {
                state->given_up = true;
                state->timer.cancel();
            });
        });
    }
    state->timer.expires_at(until);
    while (!state->answer && !state->given_up) {
        auto [failed] = co_await state->timer.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
        if (!failed) {
            break; // the limit has passed
        }
    }
    co_return std::move(state->answer);
}

} // namespace sandboxd::session
