#include "session/command_queue.hpp"

#include <algorithm>

namespace sandboxd::session {

command_queue::place::~place() {
    if (owner_ != nullptr) {
        owner_->leave(*this);
    }
}

bool command_queue::place::granted() const {
    if (granted_ || owner_ == nullptr) {
        return granted_;
    }
    // Granted is who is in the line no more: the event alone may have been set for another reason.
    const std::lock_guard lock(owner_->mutex_);
    return std::ranges::find(owner_->line_, state_) == owner_->line_.end();
}

command_queue::place command_queue::enter() {
    place one;
    one.owner_ = this;
    const std::lock_guard lock(mutex_);
    if (free_ > 0) { // then nobody waits
        --free_;
        ++running_;
        one.granted_ = true;
    } else {
        one.state_ = std::make_shared<core::shared_event>();
        line_.push_back(one.state_);
    }
    return one;
}

void command_queue::leave(place& one) {
    std::shared_ptr<core::shared_event> next;
    {
        const std::lock_guard lock(mutex_);
        if (!one.granted_) {
            const auto at = std::ranges::find(line_, one.state_);
            if (at != line_.end()) {
                line_.erase(at);
                return;
            }
        }
        if (line_.empty()) {
            ++free_;
            --running_;
        } else {
            next = std::move(line_.front());
            line_.pop_front();
        }
    }
    if (next) {
        next->set();
    }
}

std::size_t command_queue::waiting() const {
    const std::lock_guard lock(mutex_);
    return line_.size();
}

std::size_t command_queue::running() const {
    const std::lock_guard lock(mutex_);
    return running_;
}

} // namespace sandboxd::session
