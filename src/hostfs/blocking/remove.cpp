#include "hostfs/blocking/remove.hpp"

#include "hostfs/blocking/directory.hpp"

#include <cerrno>
#include <fcntl.h>
#include <optional>
#include <unistd.h>
#include <vector>

namespace sandboxd::hostfs::blocking {

namespace {

constexpr int directory_only = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

/// Of a link, Linux says ENOTDIR when a directory is asked for: either way it is none.
error_code opening_failed(int errnum) noexcept {
    return os_code(errnum == ENOTDIR ? ELOOP : errnum);
}

/// A way down a tree and up again that holds one descriptor. Upwards goes by "..", and is checked against
/// what was passed on the way down: who moves a directory meanwhile can stop the removal, not lead it
/// elsewhere.
class descent {
public:
    [[nodiscard]] error_code enter(int parent, const std::string& name) {
        core::unique_fd next(::openat(parent, name.c_str(), directory_only));
        if (!next) {
            return opening_failed(errno);
        }
        struct stat about{};
        if (::fstat(next.get(), &about) != 0) {
            return os_code(errno);
        }
        if (!way_.empty() && about.st_dev != way_.back().device) {
            return os_code(EXDEV);
        }
        way_.push_back({about.st_dev, about.st_ino, name});
        here_ = std::move(next);
        return {};
    }

    /// Back to the parent; the name of what was left there.
    [[nodiscard]] os_result<std::string> leave() {
        core::unique_fd up(::openat(here_.get(), "..", directory_only));
        if (!up) {
            return opening_failed(errno);
        }
        struct stat about{};
        if (::fstat(up.get(), &about) != 0) {
            return os_code(errno);
        }
        const auto& expected = way_[way_.size() - 2];
        if (about.st_dev != expected.device || about.st_ino != expected.inode) {
            return os_code(ELOOP);
        }
        std::string name = std::move(way_.back().name);
        way_.pop_back();
        here_ = std::move(up);
        return name;
    }

    [[nodiscard]] int here() const noexcept { return here_.get(); }
    [[nodiscard]] bool at_start() const noexcept { return way_.size() == 1; }

private:
    struct level {
        dev_t device;
        ino_t inode;
        std::string name;
    };
    std::vector<level> way_;
    core::unique_fd here_;
};

/// Removes what is no directory from `directory`; the name of the first directory in it, if there is one.
os_result<std::optional<std::string>> clear(int directory, time_limit until) {
    for (bool removed = true; removed;) {
        removed = false;
        ::lseek(directory, 0, SEEK_SET);
        directory_reader names(directory);
        for (;;) {
            if (passed(until)) {
                return os_code(ETIMEDOUT);
            }
            const auto one = names.next();
            if (!one) {
                return one.error();
            }
            if (!*one) {
                break;
            }
            std::string name((*one)->name);
            if (::unlinkat(directory, name.c_str(), 0) == 0) {
                removed = true; // names may have been skipped: look again
            } else if (errno == EISDIR || errno == EPERM) {
                return std::optional(std::move(name));
            } else if (errno != ENOENT) {
                return os_code(errno);
            }
        }
    }
    return std::optional<std::string>();
}

/// The entry's own removal; EISDIR for a directory, which has to be emptied first.
error_code unlink_entry(int parent, const std::string& name) {
    if (::unlinkat(parent, name.c_str(), 0) == 0) {
        return {};
    }
    return os_code(errno == EPERM ? EISDIR : errno); // POSIX says EPERM for a directory
}

error_code remove_empty(int parent, const std::string& name) {
    if (::unlinkat(parent, name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) {
        return {};
    }
    return opening_failed(errno);
}

/// Empties the directory that `way` stands in, and everything below it.
error_code empty(descent& way, time_limit until) {
    for (;;) {
        const auto below = clear(way.here(), until);
        if (!below) {
            return below.error();
        }
        if (*below) {
            const auto failed = way.enter(way.here(), **below);
            if (failed && failed != os_code(ENOENT)) {
                return failed;
            }
            continue;
        }
        if (way.at_start()) {
            return {};
        }
        const auto name = way.leave();
        if (!name) {
            return name.error();
        }
        if (const auto failed = remove_empty(way.here(), *name); failed && failed != os_code(ENOTEMPTY)) {
            return failed;
        }
    }
}

} // namespace

error_code remove_entry(const node& directory, const std::string& name, time_limit until) {
    const int parent = directory.handle.get();
    if (const auto failed = unlink_entry(parent, name); failed != os_code(EISDIR)) {
        return failed;
    }
    descent way;
    if (const auto failed = way.enter(parent, name)) {
        return failed;
    }
    for (;;) {
        if (const auto failed = empty(way, until)) {
            return failed;
        }
        // Whoever fills it as fast as it is emptied loses at the time limit.
        if (const auto failed = remove_empty(parent, name); failed != os_code(ENOTEMPTY)) {
            return failed;
        }
    }
}

} // namespace sandboxd::hostfs::blocking
