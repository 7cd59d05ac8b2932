#pragma once

// New content for a file, so that whoever reads it sees the old content or the new, never a part ("Decided"
// 10).

#include "agent/file_paths.hpp"

namespace sandboxd::agent {

/// Keeps other helpers from committing to, or editing, the same name in the same directory. The kernel gives
/// it back when the helper is killed.
class path_lock {
public:
    /// Waits. `locks` is a file in memory that the helpers share; without it nothing is locked.
    path_lock(int locks, const target& where);
    ~path_lock();
    path_lock(const path_lock&) = delete;
    path_lock& operator=(const path_lock&) = delete;

private:
    int locks_;
    off_t at_ = 0;
};

/// A temporary file in the directory of the target, put in its place at the end: an existing file keeps mode
/// and owner, a new one is 0644. Where there can be none (a bound file, a parent directory that is sticky or
/// not writable), the content is kept in memory and written in place, once it is whole and there is room for
/// it. Functions return 0 or an errno, or -1 as find_target() does.
class replacement {
public:
    replacement() = default;
    ~replacement();
    replacement(const replacement&) = delete;
    replacement& operator=(const replacement&) = delete;

    [[nodiscard]] int begin(target where);
    [[nodiscard]] int append(std::string_view bytes);
    /// Looks at the target again: when it is not just now that begin() was told of it.
    [[nodiscard]] int look_again();
    /// Under the path_lock.
    [[nodiscard]] int commit();
    [[nodiscard]] const target& where() const { return where_; }

private:
    [[nodiscard]] int adopt_identity() const;
    [[nodiscard]] int rename_over();
    [[nodiscard]] int put_in_place() const;
    void drop_temporary();

    target where_;
    std::string temporary_; ///< its name, while there is one
    descriptor content_;
    std::uint64_t size_ = 0;
};

} // namespace sandboxd::agent
