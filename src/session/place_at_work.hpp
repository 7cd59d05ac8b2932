#pragma once

// Each session's share of the workers.

#include "core/offload.hpp"
#include "session/command_queue.hpp"
#include "session/path_turn.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <utility>

namespace sandboxd::session {

/// Operations of one session that workers are at. Each may take its 25 s, and other sessions' operations and
/// opens wait for the same workers.
inline std::size_t most_at_work(const core::worker_pool& workers) {
    return std::max<std::size_t>(1, workers.threads() / 4);
}

/// A place among them, or in the line for one; what else is kept until the operation has ended.
struct place_at_work {
    place_at_work(session_ptr of, std::shared_ptr<path_turn> turn)
        : one(std::move(of)), turn_held(std::move(turn)), place(one->at_work.enter()) {}

    session_ptr one; ///< which lives as long as the line that is stood in
    std::shared_ptr<path_turn> turn_held;
    command_queue::place place;
};

/// False when it was not there by `until`, or when somebody has left word for `mine` before.
inline task<bool> wait_for_place(std::shared_ptr<place_at_work> held, std::shared_ptr<ticket> mine,
                                 std::chrono::steady_clock::time_point until) {
    if (const auto wake = held->place.wake()) {
        mine->wake_by([wake] { wake->set(); });
        co_await wake->wait_for(until - std::chrono::steady_clock::now());
        mine->wake_by({});
    }
    co_return held->place.granted();
}

} // namespace sandboxd::session
