#include "hostfs/blocking/archive.hpp"

#include "core/utf8.hpp"
#include "hostfs/blocking/content.hpp"
#include "hostfs/blocking/directory.hpp"
#include "hostfs/outcome.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <deque>
#include <fcntl.h>

namespace sandboxd::hostfs::blocking {

namespace {

/// Entries of one `ls`.
constexpr std::size_t most_rows = 200'000;

/// What was read of one directory. Its rows have no path yet: what comes before a name can be long, and not
/// every row finds room in the answer.
struct portion {
    std::vector<archive_entry> rows; ///< sorted
    bool cut = false;                ///< there may be more names
    bool left_out = false;           ///< a name that is not UTF-8
};

/// Nothing for what a listing leaves out.
std::optional<archive_entry> row_of(int directory, std::string name) {
    struct stat about{};
    if (::fstatat(directory, name.c_str(), &about, AT_SYMLINK_NOFOLLOW) != 0 || S_ISLNK(about.st_mode)) {
        return std::nullopt;
    }
    archive_entry row;
    row.name = std::move(name);
    row.is_dir = S_ISDIR(about.st_mode);
    if (!row.is_dir) {
        row.size = static_cast<std::uint64_t>(about.st_size);
        row.modified_at = iso_time(about.st_mtim);
    }
    return row;
}

void sort_rows(std::vector<archive_entry>& rows) {
    std::ranges::sort(rows, [](const archive_entry& a, const archive_entry& b) {
        return a.is_dir != b.is_dir ? a.is_dir : a.name < b.name;
    });
}

/// At most `most_names` names are read, whatever they are (contract N7.1).
os_result<portion> read_portion(int directory, std::size_t most_names, time_limit until) {
    portion out;
    directory_reader names(directory);
    for (std::size_t seen = 0; seen < most_names; ++seen) {
        if (passed(until)) {
            return os_code(ETIMEDOUT);
        }
        const auto next = names.next();
        if (!next) {
            return next.error();
        }
        if (!*next) {
            sort_rows(out.rows);
            return out;
        }
        // A link is left out whatever its name is, and that is nothing to tell.
        auto row = row_of(directory, std::string((*next)->name));
        if (row && !core::is_utf8(row->name)) {
            out.left_out = true;
        } else if (row) {
            out.rows.push_back(std::move(*row));
        }
    }
    out.cut = true;
    sort_rows(out.rows);
    return out;
}

/// Puts the rows of the directory `above` into `out` as long as there is room for them; false when there was
/// not for all.
bool add_rows(std::vector<archive_entry>& out, std::vector<archive_entry> rows, const std::string& above,
              row_budget& budget) {
    const std::string prefix = above.empty() ? "" : above + "/";
    for (auto& row : rows) {
        if (!budget.take(prefix.size() + 2 * row.name.size())) {
            return false;
        }
        row.path.reserve(prefix.size() + row.name.size());
        row.path.append(prefix).append(row.name);
        out.push_back(std::move(row));
    }
    return true;
}

os_result<core::unique_fd> directory_at(const workspace& in, const std::string& relative) {
    const auto found = in.find(relative);
    if (!found) {
        return found.error();
    }
    return open_directory(*found);
}

bool take_from(std::atomic<std::size_t>& what, std::size_t wanted) noexcept {
    std::size_t left = what.load(std::memory_order_relaxed);
    while (left >= wanted) {
        if (what.compare_exchange_weak(left, left - wanted, std::memory_order_relaxed)) {
            return true;
        }
    }
    return false;
}

/// A tree as it grows.
class tree_walk {
public:
    tree_walk(const workspace& in, tree_limits limits, row_budget& budget, time_limit until)
        : in_(in), limits_(limits), budget_(budget), until_(until) {}

    [[nodiscard]] result<archive_listing> from(const std::string& start) {
        waiting_.push_back({start, 1});
        while (!waiting_.empty() && !full_) {
            const place next = std::move(waiting_.front());
            waiting_.pop_front();
            const auto failed = visit(next);
            if (failed && (failed == os_code(ETIMEDOUT) || next.depth == 1)) {
                return archive_error_of(failed, start, "a directory");
            }
            out_.truncated = out_.truncated || failed;
        }
        return std::move(out_);
    }

private:
    struct place {
        std::string path;
        std::size_t depth; ///< of its entries
    };

    error_code visit(const place& at) {
        const auto directory = directory_at(in_, at.path);
        if (!directory) {
            return directory.error();
        }
        const std::size_t wanted = limits_.max_entries - out_.entries.size();
        auto found = read_portion(directory->get(), wanted + 2, until_);
        if (!found) {
            return found.error();
        }
        full_ = found->rows.size() > wanted;
        if (full_) {
            found->rows.resize(wanted);
        }
        const std::size_t first = out_.entries.size();
        full_ = !add_rows(out_.entries, std::move(found->rows), at.path, budget_) || full_;
        out_.truncated = out_.truncated || full_ || found->cut || found->left_out;
        for (std::size_t i = first; i < out_.entries.size(); ++i) {
            const auto& row = out_.entries[i];
            if (row.is_dir && at.depth < limits_.max_depth) {
                waiting_.push_back({row.path, at.depth + 1});
            } else if (row.is_dir) {
                out_.truncated = true;
            }
        }
        return {};
    }

    const workspace& in_;
    tree_limits limits_;
    row_budget& budget_;
    time_limit until_;
    std::deque<place> waiting_;
    archive_listing out_;
    bool full_ = false; ///< something had to be left out for want of room: nothing more is looked at
};

} // namespace

bool row_budget::take(std::size_t bytes) noexcept {
    return take_from(bytes_, bytes) && take_from(rows_, 1);
}

result<archive_listing> ls(const workspace& in, const std::string& relative, time_limit until) {
    const auto directory = directory_at(in, relative);
    if (!directory) {
        return archive_error_of(directory.error(), relative, "a directory");
    }
    auto found = read_portion(directory->get(), most_rows, until);
    if (!found) {
        return archive_error_of(found.error(), relative, "a directory");
    }
    archive_listing out;
    row_budget room(most_rows);
    const bool all = add_rows(out.entries, std::move(found->rows), relative, room);
    out.truncated = found->cut || !all;
    return out;
}

result<std::string> read_archived(const workspace& in, const std::string& relative, std::uint64_t max_bytes,
                                  time_limit until) {
    const auto found = in.find(relative);
    if (!found) {
        return archive_error_of(found.error(), relative, "a regular file");
    }
    auto bytes = read_content(*found, max_bytes, until);
    if (bytes) {
        return std::move(*bytes);
    }
    if (bytes.error() == os_code(EFBIG)) {
        return error{errc::invalid,
                     "'" + relative + "' is over the " + std::to_string(max_bytes) + "-byte read limit"};
    }
    return archive_error_of(bytes.error(), relative, "a regular file");
}

result<archive_listing> tree(const workspace& in, const std::string& relative, tree_limits limits,
                             row_budget& budget, time_limit until) {
    return tree_walk(in, limits, budget, until).from(relative);
}

std::optional<std::string> iso_time(struct timespec at) {
    constexpr time_t first = -62'135'596'800; // of year 1
    constexpr time_t end = 253'402'300'800;   // of year 9999
    if (at.tv_sec < first || at.tv_sec >= end) {
        return std::nullopt;
    }
    // As the reference's clients compute it from the same file: by way of a double of seconds, which is good
    // for a quarter of a microsecond, then to the nearest, and of two to the even one.
    constexpr double per_second = 1e6;
    double seconds = 0;
    double rounded = std::nearbyint(
        std::modf(static_cast<double>(at.tv_sec) + 1e-9 * static_cast<double>(at.tv_nsec), &seconds) *
        per_second);
    if (rounded < 0) {
        rounded += per_second;
        seconds -= 1;
    }
    if (rounded >= per_second) {
        rounded -= per_second;
        seconds += 1;
    }
    at.tv_sec = static_cast<time_t>(seconds);
    const auto micros = static_cast<long>(rounded);
    struct tm utc{};
    if (::gmtime_r(&at.tv_sec, &utc) == nullptr || utc.tm_year < 1 - 1900 || utc.tm_year > 9999 - 1900) {
        return std::nullopt;
    }
    std::array<char, 64> text{};
    int length = std::snprintf(text.data(), text.size(), "%04d-%02d-%02dT%02d:%02d:%02d", utc.tm_year + 1900,
                               utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec);
    std::string out(text.data(), static_cast<std::size_t>(length));
    if (micros != 0) {
        length = std::snprintf(text.data(), text.size(), ".%06ld", micros);
        out.append(text.data(), static_cast<std::size_t>(length));
    }
    return out + "+00:00";
}

} // namespace sandboxd::hostfs::blocking
