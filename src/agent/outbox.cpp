#include "agent/outbox.hpp"

#include <algorithm>

namespace sandboxd::agent {

namespace {

/// Data is only put behind what is being written up to this size: a control frame that comes next waits for
/// no more.
constexpr std::size_t batch = 64 * 1024;

} // namespace

void outbox::add(turn_source& source) {
    if (source.queued_) {
        return;
    }
    source.queued_ = true;
    turns_.push_back(&source);
}

void outbox::remove(turn_source& source) {
    if (!source.queued_) {
        return;
    }
    source.queued_ = false;
    turns_.erase(std::find(turns_.begin(), turns_.end(), &source));
}

std::string_view outbox::front() {
    if (position_ < ready_.size()) {
        return std::string_view(ready_).substr(position_);
    }
    ready_.clear();
    position_ = 0;
    ready_.swap(control_);
    while (ready_.size() < batch && !turns_.empty()) {
        auto& source = *turns_.front();
        turns_.pop_front();
        source.queued_ = false;
        if (source.take_turn(ready_)) {
            add(source);
        }
    }
    return ready_;
}

void outbox::advance(std::size_t count) {
    position_ += count;
}

void outbox::clear() {
    control_.clear();
    ready_.clear();
    position_ = 0;
    for (auto* source : turns_) {
        source->queued_ = false;
    }
    turns_.clear();
}

void outbox::trim() {
    if (position_ < ready_.size() || !control_.empty()) {
        return;
    }
    ready_ = {};
    control_ = {};
    position_ = 0;
}

} // namespace sandboxd::agent
