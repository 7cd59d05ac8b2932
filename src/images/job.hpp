#pragma once

// One image being made ready, shared by all who wait for it.

#include "core/clock.hpp"
#include "core/event.hpp"
#include "images/keeper.hpp"

#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/strand.hpp>

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace sandboxd::images {

/// The strand of a coroutine and the way to cancel it.
struct job_stop {
    explicit job_stop(const boost::asio::any_io_executor& executor);

    /// From any thread; emitted on the strand, after the coroutine's first step.
    void now() const;

    boost::asio::strand<boost::asio::any_io_executor> strand;
    std::shared_ptr<boost::asio::cancellation_signal> signal;
};

class job {
public:
    job(const boost::asio::any_io_executor& executor, std::shared_ptr<core::clock> clock,
        std::chrono::milliseconds between_lines);

    void enter(warming::state doing);
    /// Keeps the numbers, writes a line into the log when the last one is a while ago.
    void note(const progress& news);
    [[nodiscard]] warming state() const;
    /// In this state.
    [[nodiscard]] std::chrono::seconds age() const;

    // Set before it starts.
    std::string reference;
    std::string alias;
    std::uint32_t attempt = 1;
    std::optional<recipe> how;

    job_stop stop;
    core::shared_event done;
    result<void> outcome; ///< once `done`

private:
    std::shared_ptr<core::clock> clock_;
    std::chrono::milliseconds between_lines_;
    mutable std::mutex mutex_;
    warming::state doing_ = warming::state::looking;
    std::chrono::steady_clock::time_point since_;
    std::chrono::steady_clock::time_point last_line_;
    progress latest_;
};

/// Keeps the job alive as long as somebody may tell it something.
[[nodiscard]] progress_sink sink_of(std::shared_ptr<job> one);

} // namespace sandboxd::images
