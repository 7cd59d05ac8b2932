#pragma once

// The end of a sandbox's first process, told once to whoever asked.

#include "core/event.hpp"
#include "core/fd.hpp"

#include <boost/asio/any_io_executor.hpp>

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace sandboxd::sandboxes {

/// Thread-safe. Lives in a shared_ptr.
class death {
public:
    [[nodiscard]] bool is_past() const noexcept { return event_.is_set(); }
    [[nodiscard]] core::shared_event& event() noexcept { return event_; }

    /// Called when it comes, on the thread that tells; at once when it is past.
    void add(std::function<void()> callback);
    /// The first call counts.
    void tell();

private:
    core::shared_event event_;
    std::mutex mutex_;
    bool told_ = false;
    std::vector<std::function<void()>> callbacks_;
};

/// Tells `what` when the process behind a pidfd has ended. Dropping the watch ends it, nobody is told then.
class process_watch {
public:
    process_watch() = default;
    process_watch(const boost::asio::any_io_executor& executor, core::unique_fd pidfd,
                  std::shared_ptr<death> what);
    process_watch(process_watch&&) noexcept = default;
    process_watch& operator=(process_watch&& other) noexcept;
    ~process_watch();

private:
    struct state;
    std::shared_ptr<state> state_;
};

} // namespace sandboxd::sandboxes
