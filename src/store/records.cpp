#include "store/records.hpp"

#include <type_traits>
#include <utility>

namespace sandboxd::store {

namespace {
std::string_view state_text(session_state state) {
    return state == session_state::hibernated ? "hibernated" : "running";
}
} // namespace

struct apply_change {
    records& all;

    result<void> operator()(const put_slot& one) {
        all.put_slot_.bind(1, std::string_view(one.slot.slot));
        all.put_slot_.bind(2, std::string_view(one.slot.backend));
        all.put_slot_.bind(3, std::string_view(one.slot.handle));
        return all.put_slot_.run();
    }
    result<void> operator()(const drop_slot& one) {
        all.drop_slot_.bind(1, std::string_view(one.slot));
        return all.drop_slot_.run();
    }
    result<void> operator()(const put_session& one) { return all.put(one.session); }
    result<void> operator()(const set_host_door& one) {
        all.set_host_door_.bind(1, one.order);
        all.set_host_door_.bind(2, one.host_door);
        return all.set_host_door_.run();
    }
    result<void> operator()(const set_state& one) {
        all.set_state_.bind(1, one.order);
        all.set_state_.bind(2, state_text(one.state));
        all.set_state_.bind(3, one.slot);
        all.set_state_.bind(4, one.last_activity);
        return all.set_state_.run();
    }
    result<void> operator()(const drop_session& one) {
        all.drop_events_.bind(1, one.order);
        if (auto done = all.drop_events_.run(); !done) {
            return done;
        }
        all.drop_session_.bind(1, one.order);
        return all.drop_session_.run();
    }
    result<void> operator()(const put_tombstone& one) {
        all.put_tombstone_.bind_blob(1, one.stone.token_nonce.data(), one.stone.token_nonce.size());
        all.put_tombstone_.bind(2, std::string_view(one.stone.id));
        all.put_tombstone_.bind(3, one.stone.closed_at);
        all.put_tombstone_.bind(4, one.stone.purge);
        return all.put_tombstone_.run();
    }
    result<void> operator()(const purge_done& one) {
        all.purge_done_.bind_blob(1, one.token_nonce.data(), one.token_nonce.size());
        return all.purge_done_.run();
    }
    result<void> operator()(const prune_tombstones& one) {
        all.prune_.bind(1, one.before);
        return all.prune_.run();
    }
    result<void> operator()(const put_kept& one) {
        all.put_kept_.bind(1, std::string_view(one.layer.id));
        all.put_kept_.bind(2, std::string_view(one.layer.slot));
        all.put_kept_.bind(3, std::string_view(one.layer.image));
        all.put_kept_.bind(4, one.layer.since);
        return all.put_kept_.run();
    }
    result<void> operator()(const drop_kept& one) {
        all.drop_kept_.bind(1, std::string_view(one.id));
        return all.drop_kept_.run();
    }
    result<void> operator()(const put_policy& one) {
        if (!one.overrides) {
            return all.drop_policy_.run();
        }
        all.put_policy_.bind(1, std::string_view(*one.overrides));
        return all.put_policy_.run();
    }
    result<void> operator()(const touch& one) {
        all.touch_.bind(1, one.order);
        all.touch_.bind(2, one.last_activity);
        return all.touch_.run();
    }
    result<void> operator()(const reserve_events& one) {
        all.reserve_.bind(1, one.order);
        all.reserve_.bind(2, one.event_limit);
        return all.reserve_.run();
    }
    result<void> operator()(const add_event& one) { return all.add(one); }
};

result<records> records::prepare(sqlite3* db) {
    records all;
    const std::pair<statement*, const char*> wanted[] = {
        {&all.put_slot_, "INSERT OR REPLACE INTO slots VALUES (?1, ?2, ?3)"},
        {&all.drop_slot_, "DELETE FROM slots WHERE slot = ?1"},
        {&all.put_session_,
         "INSERT INTO sessions VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13) "
         "ON CONFLICT (open_order) DO UPDATE SET id = ?2, runtime = ?3, entry = ?4, tenant = ?5, workspace = "
         "?6, "
         "nonce = ?7, created_at = ?8, last_activity = ?9, state = ?10, slot = ?11, event_limit = ?12, "
         "host_door = ?13"},
        {&all.set_host_door_, "UPDATE sessions SET host_door = ?2 WHERE open_order = ?1"},
        {&all.set_state_,
         "UPDATE sessions SET state = ?2, slot = ?3, last_activity = ?4 WHERE open_order = ?1"},
        {&all.drop_session_, "DELETE FROM sessions WHERE open_order = ?1"},
        {&all.drop_events_, "DELETE FROM events WHERE open_order = ?1"},
        {&all.put_tombstone_, "INSERT OR REPLACE INTO tombstones VALUES (?1, ?2, ?3, ?4)"},
        {&all.purge_done_, "UPDATE tombstones SET purge = NULL WHERE nonce = ?1"},
        {&all.prune_, "DELETE FROM tombstones WHERE closed_at < ?1 AND purge IS NULL"},
        {&all.put_kept_, "INSERT OR REPLACE INTO kept_layers VALUES (?1, ?2, ?3, ?4)"},
        {&all.drop_kept_, "DELETE FROM kept_layers WHERE id = ?1"},
        {&all.put_policy_, "INSERT OR REPLACE INTO policy VALUES (1, ?1)"},
        {&all.drop_policy_, "DELETE FROM policy"},
        {&all.touch_, "UPDATE sessions SET last_activity = ?2 WHERE open_order = ?1"},
        {&all.reserve_, "UPDATE sessions SET event_limit = ?2 WHERE open_order = ?1"},
        {&all.add_event_, "INSERT OR REPLACE INTO events SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8 "
                          "WHERE EXISTS (SELECT 1 FROM sessions WHERE open_order = ?1)"},
        {&all.trim_events_, "DELETE FROM events WHERE open_order = ?1 AND seq <= ?2"},
        {&all.read_events_, "SELECT * FROM events WHERE open_order = ?1 ORDER BY seq"},
    };
    for (const auto& [place, sql] : wanted) {
        auto one = statement::prepare(db, sql);
        if (!one) {
            return one.error();
        }
        *place = std::move(*one);
    }
    return all;
}

result<void> records::put(const session_record& session) {
    put_session_.bind(1, session.order);
    put_session_.bind(2, std::string_view(session.id));
    put_session_.bind(3, std::string_view(session.runtime));
    put_session_.bind(4, std::string_view(session.entry));
    put_session_.bind(5, session.tenant);
    put_session_.bind(6, session.workspace);
    put_session_.bind_blob(7, session.token_nonce.data(), session.token_nonce.size());
    put_session_.bind(8, session.created_at);
    put_session_.bind(9, session.last_activity);
    put_session_.bind(10, state_text(session.state));
    put_session_.bind(11, session.slot);
    put_session_.bind(12, session.event_limit);
    put_session_.bind(13, session.host_door);
    return put_session_.run();
}

result<void> records::add(const add_event& one) {
    add_event_.bind(1, one.order);
    add_event_.bind(2, one.event.seq);
    add_event_.bind(3, one.event.at);
    add_event_.bind(4, std::string_view(one.event.op));
    add_event_.bind(5, std::string_view(one.event.target));
    add_event_.bind(6, std::int64_t{one.event.ok});
    add_event_.bind(7, std::string_view(one.event.detail));
    add_event_.bind(8, one.event.duration_ms);
    if (auto done = add_event_.run(); !done) {
        return done;
    }
    trim_events_.bind(1, one.order);
    trim_events_.bind(2, one.event.seq - static_cast<std::int64_t>(events_kept));
    return trim_events_.run();
}

result<void> records::apply(const change& one) {
    return std::visit(apply_change{*this}, one);
}

namespace {

/// Hands every row of a query to `read`, which answers a result; stops at the first error.
template <class F>
result<void> for_each_row(sqlite3* db, const char* query, F read) {
    auto rows = statement::prepare(db, query);
    if (!rows) {
        return rows.error();
    }
    for (;;) {
        auto more = rows->step();
        if (!more) {
            return more.error();
        }
        if (!*more) {
            return {};
        }
        if (auto done = read(*rows); !done) {
            return done;
        }
    }
}

result<void> load_sessions(sqlite3* db, contents& all) {
    const auto read = [&](statement& row) -> result<void> {
        session_record one;
        one.order = row.column_int(0);
        one.id = row.column_text(1);
        one.runtime = row.column_text(2);
        one.entry = row.column_text(3);
        one.tenant = row.column_optional(4);
        one.workspace = row.column_optional(5);
        if (!row.column_blob(6, one.token_nonce.data(), one.token_nonce.size())) {
            return error{errc::invalid, "the session store: the nonce of session " + one.id + " is damaged"};
        }
        one.created_at = row.column_double(7);
        one.last_activity = row.column_double(8);
        one.state = row.column_text(9) == "hibernated" ? session_state::hibernated : session_state::running;
        one.slot = row.column_optional(10);
        one.event_limit = row.column_int(11);
        one.host_door = row.column_int(12);
        all.sessions.push_back({std::move(one), {}});
        return {};
    };
    return for_each_row(db, "SELECT * FROM sessions ORDER BY open_order", read);
}

event_record event_of(statement& row) {
    return {row.column_int(1),      row.column_double(2), row.column_text(3),  row.column_text(4),
            row.column_int(5) != 0, row.column_text(6),   row.column_double(7)};
}

result<void> load_events(sqlite3* db, contents& all) {
    auto owner = all.sessions.begin();
    const auto read = [&](statement& row) -> result<void> {
        const auto order = row.column_int(0);
        while (owner != all.sessions.end() && owner->session.order < order) {
            ++owner;
        }
        if (owner != all.sessions.end() && owner->session.order == order) {
            owner->events.push_back(event_of(row));
        }
        return {};
    };
    // Those of sleeping sessions are read when somebody asks for them.
    return for_each_row(
        db,
        "SELECT * FROM events WHERE open_order IN (SELECT open_order FROM sessions WHERE state "
        "<> 'hibernated') ORDER BY open_order, seq",
        read);
}

result<void> load_slots(sqlite3* db, contents& all) {
    const auto read = [&](statement& row) -> result<void> {
        all.slots.push_back({row.column_text(0), row.column_text(1), row.column_text(2)});
        return {};
    };
    return for_each_row(db, "SELECT * FROM slots ORDER BY slot", read);
}

result<void> load_tombstones(sqlite3* db, contents& all) {
    const auto read = [&](statement& row) -> result<void> {
        tombstone one;
        if (!row.column_blob(0, one.token_nonce.data(), one.token_nonce.size())) {
            return error{errc::invalid, "the session store: the nonce of a closed session is damaged"};
        }
        one.id = row.column_text(1);
        one.closed_at = row.column_double(2);
        one.purge = row.column_optional(3);
        all.tombstones.push_back(std::move(one));
        return {};
    };
    return for_each_row(db, "SELECT nonce, id, closed_at, purge FROM tombstones ORDER BY closed_at", read);
}

result<void> load_kept(sqlite3* db, contents& all) {
    const auto read = [&](statement& row) -> result<void> {
        all.kept.push_back(
            {row.column_text(0), row.column_text(1), row.column_text(2), row.column_double(3)});
        return {};
    };
    return for_each_row(db, "SELECT id, slot, image, since FROM kept_layers ORDER BY id", read);
}

result<void> load_policy(sqlite3* db, contents& all) {
    const auto read = [&](statement& row) -> result<void> {
        all.policy = row.column_text(0);
        return {};
    };
    return for_each_row(db, "SELECT overrides FROM policy", read);
}

} // namespace

result<contents> records::load(sqlite3* db) {
    contents all;
    for (const auto part :
         {load_sessions, load_events, load_slots, load_tombstones, load_kept, load_policy}) {
        if (auto done = part(db, all); !done) {
            return done.error();
        }
    }
    return all;
}

result<std::vector<event_record>> records::events(std::int64_t order) {
    std::vector<event_record> all;
    read_events_.bind(1, order);
    for (;;) {
        auto more = read_events_.step();
        if (!more || !*more) {
            read_events_.reset();
            if (!more) {
                return more.error();
            }
            return all;
        }
        all.push_back(event_of(read_events_));
    }
}

} // namespace sandboxd::store
