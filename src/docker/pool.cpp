#include "docker/pool.hpp"

#include <algorithm>

namespace sandboxd::docker {

/// In the frame of the waiting coroutine; leaves the queue, or passes the slot on, however it ends.
struct pool::waiter {
    waiter(pool& owner, const boost::asio::any_io_executor& executor) : from(owner), woken(executor) {
        from.waiters_.push_back(this);
    }
    ~waiter() {
        if (!woken.is_set()) {
            std::erase(from.waiters_, this);
        } else if (!taken) {
            from.give_back();
        }
    }
    waiter(const waiter&) = delete;
    waiter& operator=(const waiter&) = delete;

    pool& from;
    core::event woken;
    bool taken = false;
};

pool::pool(boost::asio::any_io_executor executor, pool_limits limits)
    : executor_(std::move(executor)), limits_(limits) {}

task<pool::slot> pool::enter() {
    if (used_ < limits_.at_once) {
        ++used_;
        co_return slot(this);
    }
    waiter me(*this, executor_);
    co_await me.woken.wait();
    me.taken = true;
    co_return slot(this);
}

void pool::give_back() noexcept {
    if (waiters_.empty()) {
        --used_;
        return;
    }
    auto* next = waiters_.front();
    waiters_.pop_front();
    next->woken.set(); // the slot passes on, the count stays
}

std::unique_ptr<connection> pool::take() {
    const auto now = std::chrono::steady_clock::now();
    while (!idle_.empty()) {
        auto last = std::move(idle_.back()); // the warmest
        idle_.pop_back();
        if (now - last.since < limits_.idle_time && last.one->quiet()) {
            return std::move(last.one);
        }
    }
    return nullptr;
}

void pool::keep(std::unique_ptr<connection> one) {
    if (!one->reusable()) {
        return;
    }
    const auto now = std::chrono::steady_clock::now();
    std::erase_if(idle_, [&](const resting& old) { return now - old.since >= limits_.idle_time; });
    if (idle_.size() < limits_.idle) {
        idle_.push_back(resting{std::move(one), now});
    }
}

} // namespace sandboxd::docker
