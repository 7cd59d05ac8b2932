#pragma once

#include "hostfs/blocking/walk.hpp"
#include "sandboxd/error.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sandboxd::hostfs::blocking {

// What the archive routes read (contract 7, N7): the workspace of a session that is open, asleep or long
// gone. Links are neither followed nor shown.

/// A row (contract 7.4).
struct archive_entry {
    std::string name;
    std::string path; ///< below the workspace: "src/app.py"
    bool is_dir = false;
    std::optional<std::uint64_t> size;      ///< absent for directories
    std::optional<std::string> modified_at; ///< absent for directories, and for times outside years 1 to 9999
};

struct archive_listing {
    std::vector<archive_entry> entries;
    bool truncated = false;
};

/// What one request may still answer (contract N16.28): rows, and the bytes of their paths and names, which a
/// sandbox makes as long as it likes. Shared by walks side by side.
class row_budget {
public:
    explicit row_budget(std::size_t rows, std::size_t bytes = most_bytes) : rows_(rows), bytes_(bytes) {}
    /// Room for one row of so many bytes; false when it has none, or no row is left.
    [[nodiscard]] bool take(std::size_t bytes) noexcept;

    static constexpr std::size_t most_bytes = std::size_t{32} * 1024 * 1024;

private:
    std::atomic<std::size_t> rows_;
    std::atomic<std::size_t> bytes_;
};

/// Contract N6.
struct tree_limits {
    std::size_t max_depth = 6;
    std::size_t max_entries = 2000;
};

/// Contract 7.4: directories first, then by name. not_found when it is no directory; otherwise as
/// archive_error_of(). What can't be examined, is a link, or has a name that is not UTF-8 is left out.
/// `truncated` when there are more entries, or longer paths, than a listing may have.
[[nodiscard]] result<archive_listing> ls(const workspace& in, const std::string& relative, time_limit until);

/// The whole of a regular file; errc::invalid with `read limit` in the text over `max_bytes`.
[[nodiscard]] result<std::string> read_archived(const workspace& in, const std::string& relative,
                                                std::uint64_t max_bytes, time_limit until);

/// Contract N7.1, breadth first.
[[nodiscard]] result<archive_listing> tree(const workspace& in, const std::string& relative,
                                           tree_limits limits, row_budget& budget, time_limit until);

/// ISO 8601 in UTC, as Python prints it: "2026-01-02T03:04:05.000600+00:00", microseconds only when there are
/// any. Nothing outside years 1 to 9999: a sandbox can set any time.
[[nodiscard]] std::optional<std::string> iso_time(struct timespec at);

} // namespace sandboxd::hostfs::blocking
