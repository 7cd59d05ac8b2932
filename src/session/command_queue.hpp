#pragma once

#include "core/event.hpp"

#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <utility>

namespace sandboxd::session {

/// Places for commands that run at once, over all sessions (N2.2), or for what a session has workers do at
/// once, given out first come, first served.
/// Thread-safe; nothing is held while anybody waits.
class command_queue {
public:
    explicit command_queue(std::size_t places) : free_(places) {}

    /// A place, or a place in the line for one. Its destruction gives up either.
    class place {
    public:
        place() = default;
        place(place&& other) noexcept
            : owner_(std::exchange(other.owner_, nullptr)),
              state_(std::move(other.state_)),
              granted_(other.granted_) {}
        place& operator=(place&&) = delete;
        ~place();

        [[nodiscard]] bool granted() const;
        /// Set when the place is granted; others may set it too, to wake the waiter for their own reasons.
        /// Null when the place was free at once.
        [[nodiscard]] const std::shared_ptr<core::shared_event>& wake() const { return state_; }

    private:
        friend class command_queue;
        command_queue* owner_ = nullptr;
        std::shared_ptr<core::shared_event> state_;
        bool granted_ = false;
    };

    [[nodiscard]] place enter();
    [[nodiscard]] std::size_t waiting() const;
    [[nodiscard]] std::size_t running() const;

private:
    void leave(place& one);

    mutable std::mutex mutex_;
    std::size_t free_;
    std::size_t running_ = 0;
    std::list<std::shared_ptr<core::shared_event>> line_; ///< takes no memory while nobody waits
};

} // namespace sandboxd::session
