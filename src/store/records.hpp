#pragma once

// Changes to rows and rows to records: the prepared statements of the store.

#include "store/session_store.hpp"
#include "store/sqlite.hpp"

namespace sandboxd::store {

class records {
public:
    [[nodiscard]] static result<records> prepare(sqlite3* db);

    /// Inside a transaction of the caller's.
    [[nodiscard]] result<void> apply(const change& one);

    [[nodiscard]] static result<contents> load(sqlite3* db);

    [[nodiscard]] result<std::vector<event_record>> events(std::int64_t order);

private:
    [[nodiscard]] result<void> put(const session_record& session);
    [[nodiscard]] result<void> add(const add_event& one);

    friend struct apply_change;
    statement put_slot_, drop_slot_, put_session_, set_host_door_, set_state_, drop_session_, drop_events_,
        put_tombstone_, purge_done_, prune_, put_kept_, drop_kept_, put_policy_, drop_policy_, touch_,
        reserve_, add_event_, trim_events_, read_events_;
};

} // namespace sandboxd::store
