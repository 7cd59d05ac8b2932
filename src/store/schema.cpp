#include "store/sqlite.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace sandboxd::store {

namespace {

/// "SBXD": says that a database is ours (PRAGMA application_id).
constexpr std::int64_t our_application = 0x53425844;

/// migrations[n] takes a database from version n to n + 1 (PRAGMA user_version). Never changed once released.
constexpr std::array migrations{R"sql(
CREATE TABLE slots (
    slot TEXT PRIMARY KEY NOT NULL,
    backend TEXT NOT NULL,
    handle TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE sessions (
    open_order INTEGER PRIMARY KEY NOT NULL,
    id TEXT NOT NULL UNIQUE,
    runtime TEXT NOT NULL,
    entry TEXT NOT NULL,
    tenant TEXT,
    workspace TEXT,
    nonce BLOB NOT NULL,
    created_at REAL NOT NULL,
    last_activity REAL NOT NULL,
    state TEXT NOT NULL,
    slot TEXT,
    event_limit INTEGER NOT NULL
);
CREATE TABLE events (
    open_order INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    at REAL NOT NULL,
    op TEXT NOT NULL,
    target TEXT NOT NULL,
    ok INTEGER NOT NULL,
    detail TEXT NOT NULL,
    duration_ms REAL NOT NULL,
    PRIMARY KEY (open_order, seq)
) WITHOUT ROWID;
CREATE TABLE tombstones (
    nonce BLOB PRIMARY KEY NOT NULL,
    id TEXT NOT NULL,
    closed_at REAL NOT NULL,
    purge TEXT
) WITHOUT ROWID;
CREATE INDEX tombstones_by_age ON tombstones (closed_at);
)sql",
                                R"sql(
CREATE TABLE kept_layers (
    id TEXT PRIMARY KEY NOT NULL,
    slot TEXT NOT NULL,
    image TEXT NOT NULL,
    since REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE policy (
    only_row INTEGER PRIMARY KEY NOT NULL CHECK (only_row = 1),
    overrides TEXT NOT NULL
);
)sql",
                                R"sql(
ALTER TABLE sessions ADD COLUMN host_door INTEGER NOT NULL DEFAULT 0;
)sql"};
constexpr auto our_version = static_cast<std::int64_t>(migrations.size());

error refuse(const std::string& path, const std::string& why) {
    return {errc::invalid, "the session store " + path + " " + why + "; nothing was changed in it"};
}

result<std::string> ask(sqlite3* db, const char* sql) {
    auto query = statement::prepare(db, sql);
    if (!query) {
        return query.error();
    }
    auto row = query->step();
    if (!row) {
        return row.error();
    }
    return *row ? query->column_text(0) : std::string();
}

struct identity {
    std::int64_t application = 0;
    std::int64_t version = 0;
    bool empty = false;
};

result<identity> identify(sqlite3* db) {
    identity found;
    const auto application = ask(db, "PRAGMA application_id");
    const auto version = ask(db, "PRAGMA user_version");
    const auto tables = ask(db, "SELECT count(*) FROM sqlite_schema");
    for (const auto* one : {&application, &version, &tables}) {
        if (!*one) {
            return one->error();
        }
    }
    found.application = std::stoll(*application);
    found.version = std::stoll(*version);
    found.empty = *tables == "0" && found.application == 0 && found.version == 0;
    return found;
}

/// Only reads: whatever is wrong, the file stays as it is.
result<identity> check(sqlite3* db, const std::string& path) {
    auto found = identify(db);
    if (!found) {
        return refuse(path, "is not a database or is damaged (" + found.error().message + ")");
    }
    if (found->empty) {
        return found;
    }
    if (found->application != our_application) {
        return refuse(path, "belongs to another program");
    }
    if (found->version > our_version || found->version < 1) {
        return refuse(path, "was written by another version of sandboxd (its format is " +
                                std::to_string(found->version) + ", this program knows " +
                                std::to_string(our_version) + ")");
    }
    auto healthy = ask(db, "PRAGMA quick_check(1)");
    if (!healthy || *healthy != "ok") {
        return refuse(path, "is damaged (" + (healthy ? *healthy : healthy.error().message) + ")");
    }
    return found;
}

result<void> migrate(sqlite3* db, std::int64_t from) {
    for (auto version = from; version < our_version; ++version) {
        const std::string script = std::string("BEGIN IMMEDIATE;") +
                                   migrations.at(static_cast<std::size_t>(version)) +
                                   "PRAGMA application_id = " + std::to_string(our_application) +
                                   "; PRAGMA user_version = " + std::to_string(version + 1) + "; COMMIT;";
        if (auto done = execute(db, script.c_str()); !done) {
            [[maybe_unused]] const auto undone = execute(db, "ROLLBACK");
            return done.error();
        }
    }
    return {};
}

/// The file, made private before SQLite writes the first byte.
result<void> create_private(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return os_error("the session store " + path, errno);
    }
    // No descriptor of the file may be closed while SQLite holds POSIX locks on it: this is before it does.
    ::close(fd);
    return {};
}

} // namespace

result<database> open_database(const std::string& path) {
    if (auto made = create_private(path); !made) {
        return made.error();
    }
    sqlite3* raw = nullptr;
    const int opened = ::sqlite3_open_v2(path.c_str(), &raw,
                                         SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX |
                                             SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_EXRESCODE,
                                         nullptr);
    database db(raw);
    if (opened != SQLITE_OK) {
        return sqlite_error(raw, "the session store " + path);
    }
    ::sqlite3_busy_timeout(raw, 2000);
    auto found = check(raw, path);
    if (!found) {
        return found.error();
    }
    // FULL: in WAL mode NORMAL syncs at checkpoints only, and an answered commit could be lost with the
    // power.
    if (auto set = execute(raw, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
                                "PRAGMA wal_autocheckpoint = 1000; PRAGMA journal_size_limit = 16777216;");
        !set) {
        return set.error();
    }
    if (auto done = migrate(raw, found->version); !done) {
        return done.error();
    }
    return db;
}

} // namespace sandboxd::store
