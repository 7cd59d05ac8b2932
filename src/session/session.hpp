#pragma once

#include "core/clock.hpp"
#include "core/event.hpp"
#include "session/command_queue.hpp"
#include "session/event_log.hpp"
#include "session/native_files.hpp"
#include "session/path_locks.hpp"
#include "session/state.hpp"
#include "session/ticket.hpp"
#include "session/types.hpp"
#include "session/workspace.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace sandboxd::session {

/// A job of a session's life that several may wait for. Thread-safe.
struct job {
    core::shared_event done;
    result<void> outcome; ///< set before `done`

    void finish(result<void> how) {
        outcome = std::move(how);
        done.set();
        nudge();
    }

    /// For those who wait for something else too: the next event that is set by finish() or nudge(). Ask for
    /// it first, then look at what is waited for.
    [[nodiscard]] std::shared_ptr<core::shared_event> changed();
    void nudge();

private:
    std::mutex mutex_;
    std::shared_ptr<core::shared_event> changed_ = std::make_shared<core::shared_event>();
};

/// One opening of an id. What does not change after the open is plain; what changes with every command is
/// atomic; the rest is read and written under `mutex`, which is held for moments and never across an await.
/// The life of a session (opening, healing, closing) runs on its strand.
struct session {
    session(const boost::asio::io_context::executor_type& executor, store::session_record kept,
            std::string own_token, std::size_t most_at_work = 1);

    /// The record as it would be written now; the caller holds no lock.
    [[nodiscard]] store::session_record snapshot() const;

    const store::session_record record; ///< as opened: state, slot and times live below
    const std::string token;
    const boost::asio::strand<boost::asio::io_context::executor_type> strand;

    std::atomic<double> last_activity; ///< Unix seconds
    std::atomic<std::chrono::steady_clock::time_point>
        active_since{};                 ///< the same moment on the steady clock
    std::atomic<host_door> door;        ///< as of the sandbox that was built last
    std::atomic<bool> dirty{false};     ///< waits to be written
    std::atomic<bool> abandoned{false}; ///< the one who asked for the open has left (N16.33)
    bool counted_open = false;          ///< under the admission's lock, as the next one
    bool counted_resident = false;

    mutable std::mutex mutex;
    phase at = phase::opening;
    std::shared_ptr<sandbox> box; ///< null when it is known to be gone
    bool unsure = false; ///< there may be a sandbox in the slot: it did not answer when it was looked for
    std::optional<slot_record> slot;
    std::chrono::seconds idle_limit{0}; ///< the service's when the sandbox was built (contract 2.13 a)
    event_log log;
    std::unordered_map<std::string, std::shared_ptr<ticket>> commands; ///< by run id
    blocking::workspace_claim workspace;
    path_locks paths;            ///< writes and edits, one after the other per path; has a lock of its own
    command_queue at_work;       ///< files/* that workers are at: a session does not take them all
    std::shared_ptr<job> moving; ///< the healing, falling asleep or waking under way
    const std::shared_ptr<job> opening = std::make_shared<job>();
    std::shared_ptr<job> closing = std::make_shared<job>(); ///< a new one after a close that failed
    std::optional<std::pair<std::chrono::steady_clock::time_point, std::optional<usage_sample>>> sampled;

    /// Moves along the table; false, and no move, where the table has none. The caller holds `mutex`.
    bool step(trigger what);
    /// The caller holds `mutex`.
    [[nodiscard]] bool alive() const { return at == phase::running && box && box->alive(); }
    /// A command or file operation has not been answered yet, or one from before a restart still runs:
    /// neither eviction nor the reaper may end it (N9.5). The caller holds `mutex`.
    [[nodiscard]] bool in_flight() const {
        return !commands.empty() || (box && box->inherited_commands() != 0);
    }
    [[nodiscard]] std::chrono::steady_clock::duration idle(const core::clock& clock) const {
        return clock.steady() - active_since.load();
    }

    void touch(const core::clock& clock);
    [[nodiscard]] session_info describe(const core::clock& clock) const;
};

using session_ptr = std::shared_ptr<session>;

} // namespace sandboxd::session
