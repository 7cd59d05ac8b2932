#include "session/ticket.hpp"

#include <utility>

namespace sandboxd::session {

std::string ticket::id_inside() const {
    const std::lock_guard lock(mutex_);
    return id_inside_.empty() ? run_id_ : id_inside_;
}

void ticket::call_inside(std::string id) {
    const std::lock_guard lock(mutex_);
    id_inside_ = std::move(id);
}

void ticket::leave_word(std::atomic<bool>& what) {
    std::function<void()> wake;
    {
        const std::lock_guard lock(mutex_);
        what = true;
        wake = wake_;
    }
    if (wake) {
        wake();
    }
}

void ticket::wake_by(std::function<void()> wake) {
    bool at_once = false;
    {
        const std::lock_guard lock(mutex_);
        wake_ = std::move(wake);
        at_once = must_not_start() && wake_;
        wake = wake_;
    }
    if (at_once) {
        wake();
    }
}

bool ticket::start() {
    // Under the lock that leaves word: whoever stops it sees `started`, or this sees the stop.
    const std::lock_guard lock(mutex_);
    if (must_not_start()) {
        return false;
    }
    started_ = true;
    return true;
}

} // namespace sandboxd::session
