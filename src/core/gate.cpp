#include "core/gate.hpp"

#include <cassert>

namespace sandboxd::core {

gate::~gate() {
    assert(inside_ == 0 && "work is still inside a gate that goes away");
}

gate::pass gate::enter() {
    const std::lock_guard lock(mutex_);
    if (closed_) {
        return {};
    }
    ++inside_;
    return pass(this);
}

void gate::leave() noexcept {
    std::vector<std::shared_ptr<shared_event>> woken;
    {
        const std::lock_guard lock(mutex_);
        if (--inside_ == 0 && closed_) {
            woken.swap(waiters_);
        }
    }
    for (auto& one : woken) {
        one->set();
    }
}

void gate::close() {
    std::vector<std::shared_ptr<shared_event>> woken;
    {
        const std::lock_guard lock(mutex_);
        closed_ = true;
        if (inside_ == 0) {
            woken.swap(waiters_);
        }
    }
    for (auto& one : woken) {
        one->set();
    }
}

std::size_t gate::inside() const {
    const std::lock_guard lock(mutex_);
    return inside_;
}

task<void> gate::drained() {
    auto empty = std::make_shared<shared_event>();
    {
        const std::lock_guard lock(mutex_);
        if (closed_ && inside_ == 0) {
            co_return;
        }
        waiters_.push_back(empty);
    }
    co_await empty->wait();
}

} // namespace sandboxd::core
