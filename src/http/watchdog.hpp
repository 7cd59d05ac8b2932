#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <functional>
#include <memory>

namespace sandboxd::http {

/// One deadline that moves often and passes rarely: moving it costs a store. The timer behind it is armed
/// again only when it fires too early or when a deadline comes before it. On one strand; kept by a
/// shared_ptr.
class watchdog : public std::enable_shared_from_this<watchdog> {
public:
    using time_point = std::chrono::steady_clock::time_point;

    watchdog(const boost::asio::any_io_executor& executor, std::function<void()> on_expiry)
        : timer_(executor), on_expiry_(std::move(on_expiry)) {}

    /// The action runs once after `deadline`, unless it is moved before.
    void until(time_point deadline);
    void never() noexcept { deadline_ = time_point::max(); }

    /// For good: the action is never called again.
    void stop();

private:
    void arm();
    void fired();

    boost::asio::steady_timer timer_;
    std::function<void()> on_expiry_;
    time_point deadline_ = time_point::max();
    time_point armed_ = time_point::max();
};

} // namespace sandboxd::http
