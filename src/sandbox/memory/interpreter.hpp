#pragma once

#include "core/event.hpp"
#include "sandbox/memory/script.hpp"
#include "sandboxd/sandbox.hpp"

#include <atomic>

namespace sandboxd::sandboxes::memory {

/// Why a command was ended from outside; the first reason counts.
enum class interruption : unsigned char { none, timed_out, stopped, died };

/// A command under way: shared by its coroutine and whoever ends it. Any thread.
class running_command {
public:
    void interrupt(interruption reason) {
        auto none = interruption::none;
        reason_.compare_exchange_strong(none, reason);
        ended_early_.set();
    }
    [[nodiscard]] interruption reason() const noexcept { return reason_; }
    /// True when it was interrupted.
    [[nodiscard]] task<bool> sleep(std::chrono::steady_clock::duration time) {
        co_return co_await ended_early_.wait_for(time);
    }
    /// Set when the command is over.
    core::shared_event over;

private:
    std::atomic<interruption> reason_{interruption::none};
    core::shared_event ended_early_;
};

struct output_limits {
    std::size_t keep = SIZE_MAX;  ///< of each stream; the rest is counted and dropped
    std::size_t limit = SIZE_MAX; ///< of both together; one byte more ends the command
};

/// What a script did.
struct finished {
    std::string out; ///< both streams when merged
    std::string err;
    std::optional<int> exit_code;
    std::optional<int> signal;
    std::uint64_t dropped = 0;
    bool limited = false;
    bool timed_out = false;
};

using environment = std::vector<std::pair<std::string, std::string>>;

/// Runs the steps one after the other until the end, the deadline or an interruption.
[[nodiscard]] task<finished> interpret(std::vector<step> steps, environment env, bool merged,
                                       output_limits limits, std::chrono::milliseconds timeout,
                                       std::shared_ptr<running_command> command);

} // namespace sandboxd::sandboxes::memory
