#pragma once

// Changing a file through either door (N16, "Who serves files/*"): one after the other per path.

#include "session/path_locks.hpp"
#include "session/session.hpp"

#include <chrono>
#include <memory>
#include <string>
#include <utility>

namespace sandboxd::session {

/// The right to change a path in a session, or a place in the line for it.
struct path_turn {
    path_turn(session_ptr of, std::string key) : one(std::move(of)), in_line(one->paths, std::move(key)) {}

    session_ptr one; ///< which lives as long as the line that is stood in
    path_locks::place in_line;
};

/// False when it had not come by `until`, or when somebody has left word for `mine` before.
inline task<bool> wait_for_turn(std::shared_ptr<path_turn> held, std::shared_ptr<ticket> mine,
                                std::chrono::steady_clock::time_point until) {
    if (!held->in_line.granted()) {
        mine->wake_by([held] { held->in_line.wake().set(); });
        co_await held->in_line.wake().wait_for(until - std::chrono::steady_clock::now());
        mine->wake_by({});
    }
    co_return held->in_line.granted();
}

} // namespace sandboxd::session
