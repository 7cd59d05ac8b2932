#pragma once

// One image being made ready, shared by all who wait for it.

#include "core/clock.hpp"
#include "core/event.hpp"
#include "images/keeper.hpp"
#include "images/progress_lines.hpp"

#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/strand.hpp>

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace sandboxd::images {

/// The strand of a coroutine and the way to cancel it. A coroutine that is cancelled before its first step
/// would end without one, and nobody who waits for it would be told: so it asks begin() first.
class job_stop {
public:
    explicit job_stop(const boost::asio::any_io_executor& executor);

    /// From any thread, at any time.
    void now() const;

    /// The first step of the coroutine, on its strand. False: it is to end at once.
    [[nodiscard]] bool begin() const;

    [[nodiscard]] const boost::asio::strand<boost::asio::any_io_executor>& strand() const noexcept {
        return strand_;
    }
    [[nodiscard]] const std::shared_ptr<boost::asio::cancellation_signal>& signal() const noexcept {
        return signal_;
    }

private:
    struct state {
        bool begun = false;
        bool asked = false;
    };
    boost::asio::strand<boost::asio::any_io_executor> strand_;
    std::shared_ptr<boost::asio::cancellation_signal> signal_;
    std::shared_ptr<state> state_ = std::make_shared<state>(); ///< on the strand
};

class job {
public:
    explicit job(const keeper_options& with);

    void enter(warming::state doing);
    /// Keeps the numbers, writes a line into the log where one is due.
    void note(const progress& news);
    /// The same when there was none for a while; how long until that may be so again.
    [[nodiscard]] std::chrono::steady_clock::duration note_life();
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
    result<void> outcome;       ///< once `done`
    core::shared_event settled; ///< later: what a build makes superfluous is removed, too

private:
    std::shared_ptr<core::clock> clock_;
    std::function<void(const std::string&)> say_;
    std::chrono::milliseconds between_lines_;
    std::chrono::milliseconds quiet_;
    mutable std::mutex mutex_;
    warming::state doing_ = warming::state::looking;
    std::chrono::steady_clock::time_point since_;
    std::optional<progress_lines> lines_; ///< while it is pulled or built
};

/// Keeps the job alive as long as somebody may tell it something.
[[nodiscard]] progress_sink sink_of(std::shared_ptr<job> one);

} // namespace sandboxd::images
