#pragma once

#include "session/live_registry.hpp"

#include <mutex>
#include <utility>
#include <vector>

namespace sandboxd::session {

/// Slots that are looked into at start: those of sessions, and (without one) those where something is kept.
struct live_registry::adoption {
    std::vector<std::pair<session_ptr, slot_record>> all;
    std::size_t next = 0; ///< under `mutex`, as what follows
    std::size_t found = 0;
    std::size_t unsure = 0;
    std::size_t workers = 0;
    std::mutex mutex;
    core::shared_event done;
};

} // namespace sandboxd::session
