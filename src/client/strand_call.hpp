#pragma once

#include "core/event.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/system/system_error.hpp>

#include <exception>
#include <future>
#include <memory>
#include <optional>

namespace sandboxd::client {

template <class T>
struct strand_call {
    core::shared_event done;
    boost::asio::cancellation_signal cancel; ///< emitted on the strand only
    std::optional<T> value;
    std::exception_ptr failure;
};

template <class T>
task<void> keep_value(task<T> work, std::shared_ptr<strand_call<T>> into) {
    into->value.emplace(co_await std::move(work));
}

template <class T>
std::shared_ptr<strand_call<T>> start_on(const boost::asio::any_io_executor& strand, task<T> work) {
    auto call = std::make_shared<strand_call<T>>();
    boost::asio::co_spawn(
        strand, keep_value(std::move(work), call),
        boost::asio::bind_cancellation_slot(call->cancel.slot(), [call](std::exception_ptr why) {
            call->failure = std::move(why);
            call->done.set();
        }));
    return call;
}

/// Waits without being cut short; true when the awaiting coroutine was cancelled meanwhile. `at_cancel` is
/// called once then.
template <class F>
task<bool> wait_whole(core::shared_event& done, F at_cancel) {
    bool cancelled = false;
    try {
        co_await done.wait();
    } catch (const boost::system::system_error& e) {
        if (e.code() != boost::asio::error::operation_aborted) {
            throw;
        }
        cancelled = true;
    }
    if (cancelled) {
        co_await boost::asio::this_coro::reset_cancellation_state(boost::asio::disable_cancellation());
        at_cancel();
        co_await done.wait();
        co_await boost::asio::this_coro::reset_cancellation_state(
            boost::asio::enable_terminal_cancellation());
    }
    co_return cancelled;
}

/// The answer of `work`, which runs on the owner's strand (and may refer to the owner) while the caller waits
/// where it is. Cancelling the caller cancels `work` and waits for its end; then operation_aborted. (Asio's
/// own way, co_spawn with use_awaitable, may emit into a coroutine that has ended: fixed in Boost 1.83.)
template <class S, class T>
task<T> on_strand(std::shared_ptr<S> owner, task<T> work) {
    const boost::asio::any_io_executor strand = owner->strand();
    const auto call = start_on(strand, std::move(work));
    auto stop = [call, strand] {
        boost::asio::post(strand, [call] { call->cancel.emit(boost::asio::cancellation_type::terminal); });
    };
    if (co_await wait_whole(call->done, std::move(stop))) {
        throw boost::system::system_error(boost::asio::error::operation_aborted);
    }
    if (call->failure) {
        std::rethrow_exception(call->failure);
    }
    co_return std::move(*call->value);
}

/// The same for a thread that does nothing else meanwhile and does not run the strand's context.
template <class T>
T block_on(const boost::asio::any_io_executor& strand, task<T> work) {
    auto value = std::make_shared<std::optional<T>>();
    auto store = [](task<T> from, std::shared_ptr<std::optional<T>> into) -> task<void> {
        into->emplace(co_await std::move(from));
    };
    boost::asio::co_spawn(strand, store(std::move(work), value), boost::asio::use_future).get();
    return std::move(**value);
}

} // namespace sandboxd::client
