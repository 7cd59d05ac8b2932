#pragma once

#include "docker/container_spec.hpp"
#include "docker/json.hpp"

#include <deque>
#include <unordered_set>

namespace sandboxd::docker {

struct engine_event {
    std::string type; ///< "container"
    std::string
        action; ///< "die", "oom", "exec_die"; "exec_start: sh -c ..." holds the command line: don't log
    std::string id;
    text_pairs attributes; ///< labels, exitCode, execID
    std::int64_t time_nano = 0;

    [[nodiscard]] std::string attribute(std::string_view name) const; ///< "" when absent
};

/// Nothing for an object that is no event.
[[nodiscard]] std::optional<engine_event> read_event(const json::object& from);

/// Remembers where an event stream was, so that a reconnected one neither loses nor repeats (engine-facts
/// A10): the daemon sends again what happened at or after `since`.
class event_cursor {
public:
    /// False for an event that was accepted before.
    [[nodiscard]] bool accept(const engine_event& one);

    /// The `since` parameter, "seconds.nanoseconds"; "" before the first event.
    [[nodiscard]] std::string since() const;

private:
    static constexpr std::size_t remembered = 1024; ///< the daemon itself keeps 256
    std::int64_t last_ = 0;
    std::deque<std::string> order_;
    std::unordered_set<std::string> seen_;
};

} // namespace sandboxd::docker
