#pragma once

#include "core/event.hpp"

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

namespace sandboxd::session {

/// A command from its request to its answer. Others leave word here and wake it. Thread-safe.
class ticket {
public:
    explicit ticket(std::string run_id) : run_id_(std::move(run_id)) {}

    [[nodiscard]] const std::string& run_id() const noexcept { return run_id_; }

    /// The id that the sandbox knows it by: the same, unless that one has been used there lately (contract
    /// N16.22 refuses only ids that run).
    [[nodiscard]] std::string id_inside() const;
    void call_inside(std::string id);

    /// The session is being closed: answer at once, whatever the sandbox does.
    void close() { leave_word(closing_); }
    /// Somebody stopped it: never start it if it has not been started.
    void stop() { leave_word(stopped_); }

    [[nodiscard]] bool closing() const noexcept { return closing_; }
    [[nodiscard]] bool stopped() const noexcept { return stopped_; }
    [[nodiscard]] bool must_not_start() const noexcept { return closing_ || stopped_; }

    /// What wakes it where it waits now; called at once when there is word already. Called on any thread,
    /// possibly more than once.
    void wake_by(std::function<void()> wake);

    /// False when it must not start any more.
    [[nodiscard]] bool start();
    [[nodiscard]] bool started() const noexcept { return started_; }

    void end() { ended_.set(); }
    [[nodiscard]] core::shared_event& ended() noexcept { return ended_; }

private:
    void leave_word(std::atomic<bool>& what);

    const std::string run_id_;
    std::atomic<bool> closing_{false};
    std::atomic<bool> stopped_{false};
    std::atomic<bool> started_{false};
    mutable std::mutex mutex_;
    std::string id_inside_; ///< empty: run_id_
    std::function<void()> wake_;
    core::shared_event ended_;
};

} // namespace sandboxd::session
