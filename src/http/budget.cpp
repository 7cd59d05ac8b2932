#include "http/budget.hpp"

#include <algorithm>
#include <cassert>

namespace sandboxd::http {

struct memory_budget::waiter {
    std::uint64_t bytes = 0;
    bool served = false; ///< under the mutex
    core::shared_event ready;
};

memory_budget::~memory_budget() {
    assert(used_ == 0 && "a lease outlives its budget");
}

memory_budget::lease& memory_budget::lease::operator=(lease&& other) noexcept {
    if (this != &other) {
        release();
        owner_ = std::exchange(other.owner_, nullptr);
        bytes_ = std::exchange(other.bytes_, 0);
    }
    return *this;
}

void memory_budget::lease::add(lease other) noexcept {
    assert(owner_ == nullptr || other.owner_ == nullptr || owner_ == other.owner_);
    owner_ = owner_ != nullptr ? owner_ : other.owner_;
    bytes_ += other.bytes_;
    other.owner_ = nullptr;
    other.bytes_ = 0;
}

void memory_budget::lease::release() noexcept {
    if (owner_ != nullptr) {
        owner_->give_back(bytes_);
        owner_ = nullptr;
        bytes_ = 0;
    }
}

std::uint64_t memory_budget::used() const {
    const std::lock_guard lock(mutex_);
    return used_;
}

std::optional<memory_budget::lease> memory_budget::try_acquire(std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    if (!waiters_.empty() || bytes > limit_ - used_) {
        return std::nullopt;
    }
    used_ += bytes;
    return lease(this, bytes);
}

task<std::optional<memory_budget::lease>>
memory_budget::acquire(std::uint64_t bytes, std::chrono::steady_clock::duration limit, order place) {
    std::shared_ptr<waiter> me;
    {
        const std::lock_guard lock(mutex_);
        if (bytes > limit_) {
            co_return std::nullopt;
        }
        if (goes_first(bytes, place) && bytes <= limit_ - used_) {
            used_ += bytes;
            co_return lease(this, bytes);
        }
        me = std::make_shared<waiter>();
        me->bytes = bytes;
        waiters_.insert(place == order::ahead ? waiters_.begin() : waiters_.end(), me);
    }
    try {
        co_await me->ready.wait_for(limit);
    } catch (...) {
        if (conclude(me)) {
            give_back(bytes);
        }
        throw;
    }
    if (conclude(me)) {
        co_return lease(this, bytes);
    }
    co_return std::nullopt;
}

task<std::optional<memory_budget::lease>>
memory_budget::acquire_for_present(std::uint64_t bytes, std::chrono::steady_clock::duration limit,
                                   order place) {
    {
        const std::lock_guard lock(mutex_);
        if (goes_first(bytes, place) && bytes <= limit_ - used_) {
            used_ += bytes;
            co_return lease(this, bytes);
        }
        if (present_ != 0 && present_ + bytes > limit_ / 4) {
            co_return std::nullopt;
        }
        present_ += bytes;
    }
    const auto waited = [this, bytes] {
        const std::lock_guard lock(mutex_);
        present_ -= bytes;
    };
    try {
        auto taken = co_await acquire(bytes, limit, place);
        waited();
        co_return taken;
    } catch (...) {
        waited();
        throw;
    }
}

/// Nobody waits that it would have to stand behind. Small ones stand behind nobody: a few clients that don't
/// take their large answers would stop everybody's requests.
bool memory_budget::goes_first(std::uint64_t bytes, order place) const noexcept {
    constexpr std::uint64_t small_part = 1024;
    return waiters_.empty() || place == order::ahead || bytes <= limit_ / small_part;
}

/// The end of a wait: what it was given, or its place in the queue given up.
bool memory_budget::conclude(const std::shared_ptr<waiter>& one) {
    std::deque<std::shared_ptr<waiter>> served;
    {
        const std::lock_guard lock(mutex_);
        if (one->served) {
            return true;
        }
        std::erase(waiters_, one);
        serve(served); // a smaller one behind it may fit
    }
    for (const auto& other : served) {
        other->ready.set();
    }
    return false;
}

void memory_budget::give_back(std::uint64_t bytes) noexcept {
    std::deque<std::shared_ptr<waiter>> served;
    {
        const std::lock_guard lock(mutex_);
        used_ -= bytes;
        serve(served);
    }
    for (const auto& one : served) {
        one->ready.set();
    }
}

/// Hands what is free to those who wait, in their order.
void memory_budget::serve(std::deque<std::shared_ptr<waiter>>& served) noexcept {
    while (!waiters_.empty() && waiters_.front()->bytes <= limit_ - used_) {
        auto one = std::move(waiters_.front());
        waiters_.pop_front();
        one->served = true;
        used_ += one->bytes;
        served.push_back(std::move(one));
    }
}

} // namespace sandboxd::http
