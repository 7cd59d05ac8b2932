#pragma once

#include "sandboxd/sandbox.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace sandboxd::core {

/// A level-triggered flag to wait for, on one executor: set(), clear() and wait() are called on that executor
/// (a strand) only. Unlike an Asio channel it may be waited for with a timeout.
class event {
public:
    explicit event(boost::asio::any_io_executor executor) : executor_(std::move(executor)) {}
    event(const event&) = delete;
    event& operator=(const event&) = delete;

    void set();
    void clear() noexcept { set_ = false; }
    [[nodiscard]] bool is_set() const noexcept { return set_; }

    /// Returns at once while set. Throws operation_aborted only on cancellation of the awaiting coroutine.
    [[nodiscard]] task<void> wait();

    /// False when `limit` passed first.
    [[nodiscard]] task<bool> wait_for(std::chrono::steady_clock::duration limit);

private:
    [[nodiscard]] task<bool> wait_until(std::chrono::steady_clock::time_point limit);

    boost::asio::any_io_executor executor_;
    std::shared_ptr<std::vector<boost::asio::steady_timer*>> waiters_ =
        std::make_shared<std::vector<boost::asio::steady_timer*>>(); ///< cancelled to wake
    bool set_ = false;
};

/// The same, to be set once from any thread and awaited from any executor by any number of coroutines. Lives
/// in a shared_ptr.
class shared_event {
public:
    void set();
    [[nodiscard]] bool is_set() const noexcept { return set_.load(std::memory_order_acquire); }
    [[nodiscard]] task<void> wait();
    [[nodiscard]] task<bool> wait_for(std::chrono::steady_clock::duration limit);

private:
    struct waiter;
    [[nodiscard]] task<bool> wait_until(std::chrono::steady_clock::time_point limit);

    std::atomic<bool> set_{false};
    std::mutex mutex_;
    std::vector<std::shared_ptr<waiter>> waiters_;
};

} // namespace sandboxd::core
