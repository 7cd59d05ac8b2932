#include "session/tombstones.hpp"

namespace sandboxd::session {

void tombstones::add(const auth::token_digest& one, double closed_at) {
    const std::lock_guard lock(mutex_);
    if (all_.insert(one).second) {
        by_age_.emplace_back(closed_at, one);
    }
}

bool tombstones::contains(const auth::token_digest& one) const {
    const std::lock_guard lock(mutex_);
    return all_.contains(one);
}

void tombstones::forget_before(double time) {
    const std::lock_guard lock(mutex_);
    while (!by_age_.empty() && by_age_.front().first < time) {
        all_.erase(by_age_.front().second);
        by_age_.pop_front();
    }
}

} // namespace sandboxd::session
