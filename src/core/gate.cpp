#include "core/gate.hpp"

#include <cassert>
#include <mutex>
#include <vector>

namespace sandboxd::core {

class gate::count {
public:
    [[nodiscard]] bool enter() {
        const std::lock_guard lock(mutex_);
        if (closed_) {
            return false;
        }
        ++inside_;
        return true;
    }

    void leave() noexcept {
        wake([this] { --inside_; });
    }

    void close() {
        wake([this] { closed_ = true; });
    }

    [[nodiscard]] std::size_t inside() const {
        const std::lock_guard lock(mutex_);
        return inside_;
    }

    /// False when there is nothing to wait for.
    [[nodiscard]] bool wait_with(const std::shared_ptr<shared_event>& empty) {
        const std::lock_guard lock(mutex_);
        if (closed_ && inside_ == 0) {
            return false;
        }
        waiters_.push_back(empty);
        return true;
    }

private:
    /// Changes the count, and wakes who waits when that made it closed and empty.
    template <class Change>
    void wake(const Change& change) {
        std::vector<std::shared_ptr<shared_event>> woken;
        {
            const std::lock_guard lock(mutex_);
            change();
            if (inside_ == 0 && closed_) {
                woken.swap(waiters_);
            }
        }
        for (auto& one : woken) {
            one->set();
        }
    }

    mutable std::mutex mutex_;
    std::size_t inside_ = 0;
    bool closed_ = false;
    std::vector<std::shared_ptr<shared_event>> waiters_;
};

void gate::pass::release() noexcept {
    if (const auto entered = std::exchange(entered_, nullptr)) {
        entered->leave();
    }
}

gate::gate() : count_(std::make_shared<count>()) {}

gate::~gate() {
    assert((abandoned_ || inside() == 0) && "work is still inside a gate that goes away");
}

gate::pass gate::enter() {
    return count_->enter() ? pass(count_) : pass();
}

void gate::close() {
    count_->close();
}

void gate::abandon() {
    abandoned_ = true;
    close();
}

std::size_t gate::inside() const {
    return count_->inside();
}

task<void> gate::drained() {
    auto empty = std::make_shared<shared_event>();
    if (count_->wait_with(empty)) {
        co_await empty->wait();
    }
}

} // namespace sandboxd::core
