#pragma once

#include "sandboxd/client.hpp"

#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/system/system_error.hpp>

#include <optional>
#include <utility>

namespace sandboxd::client {

/// The outcome of `work`. When that is a failure, or the caller is cancelled meanwhile, the task that `undo`
/// returns is awaited first, which cancellation doesn't cut short: it has to have a limit of its own. Then
/// operation_aborted for a caller that was cancelled.
template <class T, class F>
task<outcome<T>> or_undo(task<outcome<T>> work, F undo) {
    std::optional<outcome<T>> done;
    try {
        done.emplace(co_await std::move(work));
    } catch (const boost::system::system_error& e) {
        if (e.code() != boost::asio::error::operation_aborted) {
            throw;
        }
    }
    if (!done) {
        co_await boost::asio::this_coro::reset_cancellation_state(boost::asio::disable_cancellation());
    }
    if (!done || !*done) {
        co_await undo();
    }
    if (!done) {
        throw boost::system::system_error(boost::asio::error::operation_aborted);
    }
    co_return std::move(*done);
}

} // namespace sandboxd::client
