#pragma once

#include "sandboxd/sandbox.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <chrono>
#include <optional>

namespace sandboxd::core {

/// Sleeps; false when cancelled.
[[nodiscard]] task<bool> sleep_for(std::chrono::steady_clock::duration time);

/// The answer of `work`, or nothing when `limit` passed first (operation_aborted when this coroutine was
/// cancelled): `work` is cancelled then and has ended when this returns. `work` must not throw for expected
/// failures (`||` waits for the first success). Needs a strand.
template <class T>
[[nodiscard]] task<std::optional<T>> with_timeout(task<T> work, std::chrono::steady_clock::duration limit) {
    using namespace boost::asio::experimental::awaitable_operators;
    boost::asio::steady_timer timer(co_await boost::asio::this_coro::executor, limit);
    auto first =
        co_await (std::move(work) || timer.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable)));
    if (first.index() == 1) {
        // A timer that ended early was cancelled together with this coroutine: that is no deadline.
        if (std::get<0>(std::get<1>(first))) {
            throw boost::system::system_error(boost::asio::error::operation_aborted);
        }
        co_return std::nullopt;
    }
    co_return std::optional<T>(std::get<0>(std::move(first)));
}

} // namespace sandboxd::core
