#pragma once

#include "core/event.hpp"
#include "sandboxd/sandbox.hpp"

#include <memory>
#include <mutex>
#include <utility>

namespace sandboxd::session {

/// One after the other, across suspensions. Thread-safe; outlives its holders.
class turns {
public:
    /// Having it; giving it back is its destruction.
    class turn {
    public:
        turn(turns& of, std::shared_ptr<core::shared_event> over) : of_(&of), over_(std::move(over)) {}
        turn(turn&& other) noexcept : of_(std::exchange(other.of_, nullptr)), over_(std::move(other.over_)) {}
        turn& operator=(turn&&) = delete;
        ~turn() {
            if (of_ != nullptr) {
                of_->give_back(*over_);
            }
        }

    private:
        turns* of_;
        std::shared_ptr<core::shared_event> over_;
    };

    [[nodiscard]] task<turn> take() {
        auto mine = std::make_shared<core::shared_event>();
        for (;;) {
            std::shared_ptr<core::shared_event> other;
            {
                const std::lock_guard lock(mutex_);
                other = held_;
                if (!other) {
                    held_ = mine;
                }
            }
            if (!other) {
                co_return turn(*this, std::move(mine));
            }
            co_await other->wait();
        }
    }

private:
    void give_back(core::shared_event& over) {
        {
            const std::lock_guard lock(mutex_);
            held_.reset();
        }
        over.set();
    }

    std::mutex mutex_;
    std::shared_ptr<core::shared_event> held_;
};

} // namespace sandboxd::session
