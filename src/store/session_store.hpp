#pragma once

// Durable records of sessions: seam 5 of the design. One implementation over SQLite for the service, one in
// memory for tests. The registry (session room) owns the store; every member is safe from any thread and
// executor.

#include "sandboxd/sandbox.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace sandboxd::store {

using nonce = std::array<unsigned char, 16>;

enum class session_state { running, hibernated };

struct session_record {
    std::int64_t order = 0; ///< unique, ever growing: the order of opening, and the key of everything below
    std::string id;         ///< unique among open sessions
    std::string runtime;    ///< alias
    std::string entry;      ///< the runtime's entry as it was at open, JSON
    std::optional<std::string> tenant;
    std::optional<std::string> workspace; ///< host directory bound into the sandbox
    nonce token_nonce{};
    double created_at = 0;    ///< Unix seconds
    double last_activity = 0; ///< Unix seconds
    session_state state = session_state::running;
    std::optional<std::string> slot;
    std::int64_t event_limit = 0; ///< event numbers up to this one may have been given out
    std::int64_t host_door = 0;   ///< session::host_door of the sandbox that was built last

    friend bool operator==(const session_record&, const session_record&) = default;
};

/// A session that was closed, so that its token can be told from a stranger's (N16.4).
struct tombstone {
    std::string id;
    nonce token_nonce{};
    double closed_at = 0;             ///< Unix seconds
    std::optional<std::string> purge; ///< the workspace's directory that is still to be removed

    friend bool operator==(const tombstone&, const tombstone&) = default;
};

/// What a closed session left in its slot (SANDBOXD_PERSIST_CONTAINERS): the next open of its id finds it.
struct kept_layer {
    std::string id;
    std::string slot;
    std::string image; ///< as the sandbox_spec had it: a layer fits the image it was made on only
    double since = 0;  ///< Unix seconds

    friend bool operator==(const kept_layer&, const kept_layer&) = default;
};

/// One line of a session's event log (contract 2.11).
struct event_record {
    std::int64_t seq = 0;
    double at = 0; ///< Unix seconds
    std::string op;
    std::string target;
    bool ok = false;
    std::string detail;
    double duration_ms = 0;

    friend bool operator==(const event_record&, const event_record&) = default;
};

inline constexpr std::size_t events_kept = 200; ///< per session

// What can change. A change to a session or slot that is not there any more does nothing.
struct put_slot { ///< the record of a place where nothing is yet: see commit()
    slot_record slot;
};
struct drop_slot {
    std::string slot;
};
struct put_session { ///< adds or replaces, by `order`
    session_record session;
};
struct set_host_door {
    std::int64_t order = 0;
    std::int64_t host_door = 0;
};
struct set_state { ///< put to sleep or woken
    std::int64_t order = 0;
    session_state state = session_state::running;
    std::optional<std::string> slot;
    double last_activity = 0;
};
struct drop_session { ///< with its events; its slot stays
    std::int64_t order = 0;
};
struct put_tombstone {
    tombstone stone;
};
struct purge_done {
    nonce token_nonce{};
};
struct prune_tombstones { ///< those closed before, purged or without anything to purge
    double before = 0;
};
struct put_kept { ///< adds or replaces, by id
    kept_layer layer;
};
struct drop_kept {
    std::string id;
};
struct put_policy { ///< what PUT /policy has set, as text; none: nothing any more
    std::optional<std::string> overrides;
};
struct touch {
    std::int64_t order = 0;
    double last_activity = 0;
};
struct reserve_events {
    std::int64_t order = 0;
    std::int64_t event_limit = 0;
};
struct add_event { ///< and drops those that are no longer among the last events_kept
    std::int64_t order = 0;
    event_record event;
};

using change = std::variant<put_slot, drop_slot, put_session, set_host_door, set_state, drop_session,
                            put_tombstone, purge_done, prune_tombstones, put_kept, drop_kept, put_policy,
                            touch, reserve_events, add_event>;

struct session_contents {
    session_record session;
    std::vector<event_record> events; ///< ascending; none of a sleeping session: session_store::events
};

struct contents {
    std::vector<session_contents> sessions; ///< in the order of opening
    std::vector<slot_record> slots;
    std::vector<tombstone> tombstones;
    std::vector<kept_layer> kept;
    std::optional<std::string> policy; ///< what PUT /policy has set
};

class session_store {
public:
    virtual ~session_store() = default;
    session_store() = default;
    session_store(const session_store&) = delete;
    session_store& operator=(const session_store&) = delete;

    /// Everything there is; for the start. errc::io, errc::internal.
    [[nodiscard]] virtual task<result<contents>> load() = 0;

    /// The events of one session, ascending: what has been committed of them.
    [[nodiscard]] virtual task<result<std::vector<event_record>>> events(std::int64_t order) = 0;

    /// Applies all changes or none. When it has answered, they survive a crash of the service and of the
    /// machine; slots that are put, without anything else, the latter from the next other commit on. (No
    /// sandbox survives a machine that crashes, and what is left of it is found without a record, as the
    /// builder's own.) Callers that wait at the same time share one write to the disk. errc::io (disk full,
    /// ...), errc::exists (an id is open twice), errc::unavailable after close().
    [[nodiscard]] virtual task<result<void>> commit(std::vector<change> changes) = 0;

    /// Ends: what was accepted is written, later commits are refused. Blocks; idempotent.
    virtual void close() = 0;
};

/// Opens or creates the database at `path`; blocks. errc::io or errc::invalid, with a message that names the
/// file: not a database, another program's, damaged, or written by a newer version. Nothing is changed then.
[[nodiscard]] result<std::unique_ptr<session_store>> open_sqlite_store(const std::string& path);

/// Keeps the records in memory. A copy of the pointer given to a second registry plays a restart.
[[nodiscard]] std::shared_ptr<session_store> create_memory_store();

} // namespace sandboxd::store
