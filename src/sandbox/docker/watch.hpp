#pragma once

// One watch per daemon: its events tell exits and lack of memory, its silence makes the service `degraded`,
// its return makes up for what was missed.

#include "core/gate.hpp"
#include "docker/engine.hpp"
#include "sandbox/death.hpp"

#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/strand.hpp>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace sandboxd::sandboxes::docker_backend {

/// What is known of one container's end.
struct container_fate {
    std::shared_ptr<death> end = std::make_shared<death>();
    std::atomic<std::uint64_t> oom_kills{0}; ///< as the daemon's events tell
};

class daemon_watch : public std::enable_shared_from_this<daemon_watch> {
public:
    /// `background` counts its coroutines: close(), then await drained().
    daemon_watch(const boost::asio::any_io_executor& executor, core::gate& background,
                 std::shared_ptr<docker::engine> engine, std::string service_uuid,
                 std::chrono::milliseconds look_every);

    void begin();
    void close();

    /// From now on the container's end is told. It may have ended before: look once after this.
    void add(const std::string& container, const std::shared_ptr<container_fate>& fate);
    /// Unless the container has been started again, with another fate.
    void forget(const std::string& container, const std::shared_ptr<container_fate>& fate);

    /// Containers of this slot are removed until none is left, now (when the daemon is back) and for a while
    /// after: a create that was given up may still happen.
    void remove_later(const std::string& slot);
    /// The same, but they are ended and stay.
    void end_later(const std::string& slot);
    /// The slot is used again: when this returns, what is in it is left alone.
    [[nodiscard]] task<void> use_again(std::string slot);

    /// Why sandboxes can't be opened or closed now, in words; nothing while the daemon answers.
    [[nodiscard]] std::optional<std::string> degraded() const;

private:
    struct leftover {
        std::chrono::steady_clock::time_point until; ///< tried again until then, and until it has worked
        bool stays = false;                          ///< ended, not removed
    };

    [[nodiscard]] task<void> follow(std::shared_ptr<daemon_watch> self);
    [[nodiscard]] task<void> look_after(std::shared_ptr<daemon_watch> self);
    [[nodiscard]] task<void> take_stock(std::shared_ptr<daemon_watch> self);
    [[nodiscard]] task<void> clear_leftovers();
    [[nodiscard]] task<docker::answer<void>> clear(std::string slot, bool stays);
    void on_event(const docker::engine_event& one);
    void note(std::optional<std::string> trouble);
    [[nodiscard]] docker::filter_list ours() const;

    boost::asio::strand<boost::asio::any_io_executor> strand_;
    core::gate& background_;
    std::shared_ptr<docker::engine> engine_;
    std::string service_uuid_;
    std::chrono::milliseconds look_every_;
    std::shared_ptr<boost::asio::cancellation_signal> stop_following_ =
        std::make_shared<boost::asio::cancellation_signal>();
    std::shared_ptr<core::shared_event> closed_ = std::make_shared<core::shared_event>();
    mutable std::mutex mutex_;
    std::map<std::string, std::weak_ptr<container_fate>> fates_; ///< by container
    std::map<std::string, leftover> leftovers_;                  ///< by slot
    std::string clearing_;                                       ///< the slot that is being cleared now
    std::shared_ptr<core::shared_event> cleared_;                ///< set when it is done with
    std::optional<std::string> trouble_;
};

} // namespace sandboxd::sandboxes::docker_backend
