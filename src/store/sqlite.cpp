#include "store/sqlite.hpp"

#include <cstring>
#include <utility>

namespace sandboxd::store {

error sqlite_error(sqlite3* db, std::string_view what) {
    std::string text(what);
    text += ": ";
    text += db == nullptr ? "out of memory" : ::sqlite3_errmsg(db);
    const bool taken = db != nullptr && (::sqlite3_extended_errcode(db) == SQLITE_CONSTRAINT_UNIQUE);
    return {taken ? errc::exists : errc::io, std::move(text)};
}

result<void> execute(sqlite3* db, const char* sql) {
    if (::sqlite3_exec(db, sql, nullptr, nullptr, nullptr) != SQLITE_OK) {
        return sqlite_error(db, "the session store");
    }
    return {};
}

result<statement> statement::prepare(sqlite3* db, std::string_view sql) {
    sqlite3_stmt* handle = nullptr;
    if (::sqlite3_prepare_v3(db, sql.data(), static_cast<int>(sql.size()), SQLITE_PREPARE_PERSISTENT, &handle,
                             nullptr) != SQLITE_OK) {
        return sqlite_error(db, "the session store");
    }
    return statement(handle);
}

void statement::bind(int at, std::string_view text) {
    // An empty view may have no address, which SQLite would take for NULL.
    const char* start = text.empty() ? "" : text.data();
    ::sqlite3_bind_text64(handle_.get(), at, start, text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
}

void statement::bind(int at, const std::optional<std::string>& text) {
    if (text) {
        bind(at, std::string_view(*text));
    } else {
        ::sqlite3_bind_null(handle_.get(), at);
    }
}

void statement::bind_blob(int at, const void* bytes, std::size_t size) {
    ::sqlite3_bind_blob64(handle_.get(), at, bytes, size, SQLITE_TRANSIENT);
}

result<bool> statement::step() {
    switch (::sqlite3_step(handle_.get())) {
    case SQLITE_ROW:
        return true;
    case SQLITE_DONE:
        return false;
    default:
        return sqlite_error(::sqlite3_db_handle(handle_.get()), "the session store");
    }
}

result<void> statement::run() {
    for (;;) {
        auto more = step();
        if (!more) {
            reset();
            return more.error();
        }
        if (!*more) {
            reset();
            return {};
        }
    }
}

void statement::reset() noexcept {
    ::sqlite3_reset(handle_.get());
    ::sqlite3_clear_bindings(handle_.get());
}

std::string statement::column_text(int at) const {
    const auto* text = ::sqlite3_column_text(handle_.get(), at);
    if (text == nullptr) {
        return {};
    }
    return {reinterpret_cast<const char*>(text),
            static_cast<std::size_t>(::sqlite3_column_bytes(handle_.get(), at))};
}

std::optional<std::string> statement::column_optional(int at) const {
    if (::sqlite3_column_type(handle_.get(), at) == SQLITE_NULL) {
        return std::nullopt;
    }
    return column_text(at);
}

bool statement::column_blob(int at, void* out, std::size_t size) const {
    const void* bytes = ::sqlite3_column_blob(handle_.get(), at);
    if (bytes == nullptr || static_cast<std::size_t>(::sqlite3_column_bytes(handle_.get(), at)) != size) {
        return false;
    }
    std::memcpy(out, bytes, size);
    return true;
}

} // namespace sandboxd::store
