#include "http/watchdog.hpp"

namespace sandboxd::http {

void watchdog::until(time_point deadline) {
    deadline_ = deadline;
    if (deadline_ < armed_) {
        arm();
    }
}

void watchdog::stop() {
    on_expiry_ = nullptr;
    never();
    timer_.cancel();
}

void watchdog::arm() {
    armed_ = deadline_;
    timer_.expires_at(armed_);
    timer_.async_wait([self = shared_from_this()](boost::system::error_code failed) {
        if (!failed) {
            self->fired();
        }
    });
}

void watchdog::fired() {
    // A wait that had succeeded before arm() replaced it comes here early; it finds the deadline ahead and
    // arms the timer once more.
    armed_ = time_point::max();
    if (deadline_ > std::chrono::steady_clock::now()) {
        if (deadline_ != time_point::max()) {
            arm();
        }
        return;
    }
    never();
    if (on_expiry_) {
        on_expiry_();
    }
}

} // namespace sandboxd::http
