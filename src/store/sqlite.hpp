#pragma once

// The thin layer over SQLite's C interface: owned handles, bound parameters, result values. Blocks; one
// thread at a time.

#include "sandboxd/error.hpp"

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace sandboxd::store {

struct close_database {
    void operator()(sqlite3* db) const noexcept { ::sqlite3_close_v2(db); }
};
using database = std::unique_ptr<sqlite3, close_database>;

/// error{io, "<what>: <what SQLite says>"}.
[[nodiscard]] error sqlite_error(sqlite3* db, std::string_view what);

/// Runs SQL that answers nothing.
[[nodiscard]] result<void> execute(sqlite3* db, const char* sql);

/// One prepared statement. bind() counts its parameters from 1; column_...() its columns from 0.
class statement {
public:
    statement() = default;
    [[nodiscard]] static result<statement> prepare(sqlite3* db, std::string_view sql);

    void bind(int at, std::int64_t value) { ::sqlite3_bind_int64(handle_.get(), at, value); }
    void bind(int at, double value) { ::sqlite3_bind_double(handle_.get(), at, value); }
    void bind(int at, std::string_view text);
    void bind(int at, const std::optional<std::string>& text);
    void bind_blob(int at, const void* bytes, std::size_t size);

    /// True when there is a row, false at the end.
    [[nodiscard]] result<bool> step();
    /// Steps to the end and makes the statement ready for the next use, whatever came out.
    [[nodiscard]] result<void> run();
    void reset() noexcept;

    [[nodiscard]] std::int64_t column_int(int at) const { return ::sqlite3_column_int64(handle_.get(), at); }
    [[nodiscard]] double column_double(int at) const { return ::sqlite3_column_double(handle_.get(), at); }
    [[nodiscard]] std::string column_text(int at) const;
    [[nodiscard]] std::optional<std::string> column_optional(int at) const;
    /// False when the blob has another size.
    [[nodiscard]] bool column_blob(int at, void* out, std::size_t size) const;

private:
    struct finalize {
        void operator()(sqlite3_stmt* one) const noexcept { ::sqlite3_finalize(one); }
    };
    explicit statement(sqlite3_stmt* handle) : handle_(handle) {}
    std::unique_ptr<sqlite3_stmt, finalize> handle_;
};

/// Opens the file and brings its schema up to date; see open_sqlite_store.
[[nodiscard]] result<database> open_database(const std::string& path);

} // namespace sandboxd::store
