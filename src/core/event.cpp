#include "core/event.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <optional>

namespace sandboxd::core {

namespace asio = boost::asio;

namespace {

constexpr auto wait_token = asio::as_tuple(asio::use_awaitable);
constexpr auto never = std::chrono::steady_clock::time_point::max();

/// A wait that ended early is a wake-up or a cancellation of the coroutine; the latter must not look like a
/// wake-up.
task<void> throw_if_cancelled() {
    const auto state = co_await asio::this_coro::cancellation_state;
    if (state.cancelled() != asio::cancellation_type::none) {
        throw boost::system::system_error(asio::error::operation_aborted);
    }
}

} // namespace

void event::set() {
    set_ = true;
    for (auto* timer : *waiters_) {
        timer->cancel();
    }
}

task<bool> event::wait_until(std::chrono::steady_clock::time_point limit) {
    // A timer for each wait; it leaves the list whatever ends the coroutine, which may outlive the event.
    struct place {
        place(std::shared_ptr<std::vector<asio::steady_timer*>> all, asio::steady_timer& mine)
            : list(std::move(all)), timer(&mine) {
            list->push_back(timer);
        }
        place(const place&) = delete;
        place& operator=(const place&) = delete;
        ~place() { std::erase(*list, timer); }
        std::shared_ptr<std::vector<asio::steady_timer*>> list;
        asio::steady_timer* timer;
    };
    while (!set_) {
        asio::steady_timer timer(executor_, limit);
        const place mine(waiters_, timer);
        const auto [cut_short] = co_await timer.async_wait(wait_token);
        co_await throw_if_cancelled();
        if (!cut_short) {
            break;
        }
    }
    co_return set_;
}

task<void> event::wait() {
    co_await wait_until(never);
}

task<bool> event::wait_for(std::chrono::steady_clock::duration limit) {
    co_return co_await wait_until(std::chrono::steady_clock::now() + limit);
}

/// One wait. The timer is touched by the waiting coroutine and by whoever sets the event, on different
/// threads where no strand orders them, hence the mutex. It ends with the wait: whoever sets the event may
/// hold the waiter for longer than the waiting coroutine's context lives.
struct shared_event::waiter {
    waiter(const asio::any_io_executor& executor, std::chrono::steady_clock::time_point limit)
        : timer(std::in_place, executor, limit) {}

    void wake() {
        const std::lock_guard lock(mutex);
        woken = true;
        if (timer) {
            timer->cancel();
        }
    }

    template <class Handler>
    void start(Handler handler) {
        const std::lock_guard lock(mutex);
        if (woken) {
            // The cancellation came before there was something to cancel.
            timer->expires_at({});
        }
        timer->async_wait(std::move(handler));
    }

    void end() {
        const std::lock_guard lock(mutex);
        timer.reset();
    }

    std::mutex mutex;
    std::optional<asio::steady_timer> timer;
    bool woken = false;
};

void shared_event::set() {
    std::vector<std::shared_ptr<waiter>> woken;
    {
        const std::lock_guard lock(mutex_);
        set_.store(true, std::memory_order_release);
        woken.swap(waiters_);
    }
    for (const auto& one : woken) {
        one->wake();
    }
}

task<bool> shared_event::wait_until(std::chrono::steady_clock::time_point limit) {
    if (is_set()) {
        co_return true;
    }
    struct wait_end {
        std::shared_ptr<waiter> of;
        ~wait_end() { of->end(); }
    };
    const auto me = std::make_shared<waiter>(co_await asio::this_coro::executor, limit);
    const wait_end at_end{me};
    {
        const std::lock_guard lock(mutex_);
        if (is_set()) {
            co_return true;
        }
        waiters_.push_back(me);
    }
    auto start = [me](auto handler) {
        // The coroutine may go on, on another thread, before start() has returned.
        const auto self = me;
        self->start(std::move(handler));
    };
    co_await asio::async_initiate<decltype(wait_token), void(boost::system::error_code)>(std::move(start),
                                                                                         wait_token);
    {
        const std::lock_guard lock(mutex_);
        std::erase(waiters_, me);
    }
    co_await throw_if_cancelled();
    co_return is_set();
}

task<void> shared_event::wait() {
    co_await wait_until(never);
}

task<bool> shared_event::wait_for(std::chrono::steady_clock::duration limit) {
    co_return co_await wait_until(std::chrono::steady_clock::now() + limit);
}

} // namespace sandboxd::core
