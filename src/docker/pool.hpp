#pragma once

#include "core/event.hpp"
#include "docker/connection.hpp"

#include <deque>

namespace sandboxd::docker {

struct pool_limits {
    std::size_t at_once = 32; ///< calls under way; more wait
    std::size_t idle = 8;     ///< connections kept open
    std::chrono::seconds idle_time{30};
};

/// The connections of one client: a cap on calls under way and a few idle ones for the next. On one strand.
class pool {
public:
    pool(boost::asio::any_io_executor executor, pool_limits limits);

    /// The right to have one call under way; given back by its destruction.
    class slot {
    public:
        slot() = default;
        explicit slot(pool* owner) : owner_(owner) {}
        slot(slot&& other) noexcept : owner_(std::exchange(other.owner_, nullptr)) {}
        slot& operator=(slot&& other) noexcept {
            if (this != &other) {
                reset();
                owner_ = std::exchange(other.owner_, nullptr);
            }
            return *this;
        }
        ~slot() { reset(); }
        void reset() noexcept {
            if (owner_ != nullptr) {
                std::exchange(owner_, nullptr)->give_back();
            }
        }

    private:
        pool* owner_ = nullptr;
    };

    /// Waits until the cap allows one more; first come, first served.
    [[nodiscard]] task<slot> enter();

    /// An idle connection that looks alive; null when there is none.
    [[nodiscard]] std::unique_ptr<connection> take();

    /// Keeps the connection for the next call if it can carry one.
    void keep(std::unique_ptr<connection> one);

    /// Closes the idle ones: the daemon was away, so all of them are stale.
    void forget() noexcept { idle_.clear(); }

    [[nodiscard]] std::size_t idle() const noexcept { return idle_.size(); }
    [[nodiscard]] std::size_t under_way() const noexcept { return used_; }

private:
    struct waiter;
    struct resting {
        std::unique_ptr<connection> one;
        std::chrono::steady_clock::time_point since;
    };

    void give_back() noexcept;

    boost::asio::any_io_executor executor_;
    pool_limits limits_;
    std::size_t used_ = 0;
    std::deque<waiter*> waiters_;
    std::deque<resting> idle_;
};

} // namespace sandboxd::docker
