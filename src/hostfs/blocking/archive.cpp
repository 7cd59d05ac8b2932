#include "hostfs/blocking/archive.hpp"

#include "core/utf8.hpp"
#include "hostfs/blocking/content.hpp"
#include "hostfs/blocking/directory.hpp"
#include "hostfs/outcome.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <deque>
#include <fcntl.h>

namespace sandboxd::hostfs::blocking {

namespace {

/// Entries of one `ls`.
constexpr std::size_t most_rows = 200'000;

/// What was read of one directory.
struct portion {
    std::vector<archive_entry> rows; ///< sorted
    bool cut = false;                ///< there may be more names
    bool left_out = false;           ///< a name that is not UTF-8
};

/// Nothing for what a listing leaves out.
std::optional<archive_entry> row_of(int directory, std::string name, const std::string& above) {
    struct stat about{};
    if (::fstatat(directory, name.c_str(), &about, AT_SYMLINK_NOFOLLOW) != 0 || S_ISLNK(about.st_mode)) {
        return std::nullopt;
    }
    archive_entry row;
    row.path = above.empty() ? name : above + "/" + name;
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
os_result<portion> read_portion(int directory, const std::string& above, std::size_t most_names,
                                time_limit until) {
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
        if (!core::is_utf8((*next)->name)) {
            out.left_out = true;
        } else if (auto row = row_of(directory, std::string((*next)->name), above)) {
            out.rows.push_back(std::move(*row));
        }
    }
    out.cut = true;
    sort_rows(out.rows);
    return out;
}

os_result<core::unique_fd> directory_at(const workspace& in, const std::string& relative) {
    const auto found = in.find(relative);
    if (!found) {
        return found.error();
    }
    return open_directory(*found);
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
        auto found = read_portion(directory->get(), at.path, wanted + 2, until_);
        if (!found) {
            return found.error();
        }
        const auto allowed = budget_.take(std::min(wanted, found->rows.size()));
        full_ = allowed < found->rows.size();
        out_.truncated = out_.truncated || full_ || found->cut || found->left_out;
        found->rows.resize(allowed);
        for (auto& row : found->rows) {
            if (row.is_dir && at.depth < limits_.max_depth) {
                waiting_.push_back({row.path, at.depth + 1});
            } else if (row.is_dir) {
                out_.truncated = true;
            }
            out_.entries.push_back(std::move(row));
        }
        return {};
    }

    const workspace& in_;
    tree_limits limits_;
    row_budget& budget_;
    time_limit until_;
    std::deque<place> waiting_;
    archive_listing out_;
    bool full_ = false; ///< something had to be left out for want of rows: nothing more is looked at
};

} // namespace

std::size_t row_budget::take(std::size_t wanted) noexcept {
    std::size_t left = left_.load(std::memory_order_relaxed);
    std::size_t taken = std::min(left, wanted);
    while (!left_.compare_exchange_weak(left, left - taken, std::memory_order_relaxed)) {
        taken = std::min(left, wanted);
    }
    return taken;
}

result<archive_listing> ls(const workspace& in, const std::string& relative, time_limit until) {
    const auto directory = directory_at(in, relative);
    if (!directory) {
        return archive_error_of(directory.error(), relative, "a directory");
    }
    auto found = read_portion(directory->get(), relative, most_rows, until);
    if (!found) {
        return archive_error_of(found.error(), relative, "a directory");
    }
    return archive_listing{std::move(found->rows), found->cut};
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
    constexpr long per_second = 1'000'000;
    long micros = (at.tv_nsec + 500) / 1000;
    at.tv_sec += micros / per_second;
    micros %= per_second;
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
