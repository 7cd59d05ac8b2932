#include "hostfs/blocking/remove.hpp"

#include "hostfs/blocking/directory.hpp"

#include <cerrno>
#include <fcntl.h>
#include <optional>
#include <set>
#include <unistd.h>
#include <utility>
#include <vector>

namespace sandboxd::hostfs::blocking {

namespace {

constexpr int directory_only = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

/// Directories that a thorough removal remembers as not to be emptied; beyond them it stops.
constexpr std::size_t most_stuck = 100'000;

/// Of a link, Linux says ENOTDIR when a directory is asked for: either way it is none.
error_code opening_failed(int errnum) noexcept {
    return os_code(errnum == ENOTDIR ? ELOOP : errnum);
}

/// A directory's device and inode.
using identity = std::pair<dev_t, ino_t>;

/// A way down a tree and up again that holds one descriptor. Upwards goes by "..", and is checked against
/// what was passed on the way down: who moves a directory meanwhile can stop the removal, not lead it
/// elsewhere.
class descent {
public:
    struct level {
        identity which;
        std::string name;
        std::int64_t resume = 0; ///< what comes before has been seen
        bool removed = false;    ///< something, since its beginning was read last
    };

    /// `shut`: one that its owner may not read, write or search is opened up.
    [[nodiscard]] error_code enter(int parent, const std::string& name, bool shut);

    /// Back to the parent; what was left there.
    [[nodiscard]] os_result<level> leave();

    [[nodiscard]] int here() const noexcept { return here_.get(); }
    [[nodiscard]] level& top() noexcept { return way_.back(); }
    [[nodiscard]] bool at_start() const noexcept { return way_.size() == 1; }

private:
    std::vector<level> way_;
    core::unique_fd here_;
};

/// Matters where the service is not root.
bool open_up(int parent, const std::string& name) {
    const core::unique_fd handle(
        ::openat(parent, name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    const std::string same = "/proc/self/fd/" + std::to_string(handle.get());
    return handle && ::chmod(same.c_str(), 0700) == 0;
}

error_code descent::enter(int parent, const std::string& name, bool shut) {
    core::unique_fd next(::openat(parent, name.c_str(), directory_only));
    if (!next && errno == EACCES && shut && open_up(parent, name)) {
        next.reset(::openat(parent, name.c_str(), directory_only));
    }
    if (!next) {
        return opening_failed(errno);
    }
    struct stat about{};
    if (::fstat(next.get(), &about) != 0) {
        return os_code(errno);
    }
    if (!way_.empty() && about.st_dev != way_.back().which.first) {
        return os_code(EXDEV);
    }
    if (shut && (about.st_mode & 0700) != 0700) {
        ::fchmod(next.get(), 0700);
    }
    way_.push_back({{about.st_dev, about.st_ino}, name});
    here_ = std::move(next);
    return {};
}

os_result<descent::level> descent::leave() {
    core::unique_fd up(::openat(here_.get(), "..", directory_only));
    if (!up) {
        return opening_failed(errno);
    }
    struct stat about{};
    if (::fstat(up.get(), &about) != 0) {
        return os_code(errno);
    }
    if (identity(about.st_dev, about.st_ino) != way_[way_.size() - 2].which) {
        return os_code(ELOOP);
    }
    level left = std::move(way_.back());
    way_.pop_back();
    here_ = std::move(up);
    return left;
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

/// The removal of one directory with everything in it.
class tree_removal {
public:
    tree_removal(int parent, const std::string& name, time_limit until, removal how)
        : parent_(parent), name_(name), until_(until), thorough_(how == removal::thorough) {}

    [[nodiscard]] error_code run() {
        if (const auto failed = way_.enter(parent_, name_, thorough_)) {
            return failed;
        }
        for (;;) {
            progress_ = false;
            left_.clear();
            stuck_.clear();
            way_.top().resume = 0;
            if (const auto failed = empty()) {
                return failed;
            }
            const auto failed = remove_empty(parent_, name_);
            if (failed != os_code(ENOTEMPTY)) {
                return failed;
            }
            // Whoever fills it as fast as it is emptied loses at the time limit.
            if (thorough_ && !progress_) {
                return left_ ? left_ : failed;
            }
        }
    }

private:
    /// Removes what is no directory from where the way stands, from where it was left on; the name of the
    /// next directory in it, if there is one.
    os_result<std::optional<std::string>> clear();

    /// Empties the directory that the way stands in, and everything below it.
    error_code empty();

    /// Goes into a directory, to empty it.
    error_code descend(const std::string& name);

    /// Removes the directory that was left just now.
    error_code finish(const descent::level& left);

    /// True when the removal goes on without it.
    bool pass_over(error_code why) {
        if (thorough_ && !left_) {
            left_ = why;
        }
        return thorough_;
    }

    int parent_;
    std::string name_;
    time_limit until_;
    bool thorough_;
    descent way_;
    bool progress_ = false;
    error_code left_;          ///< why something was left
    std::set<identity> stuck_; ///< directories with something in them that can't be removed
};

os_result<std::optional<std::string>> tree_removal::clear() {
    auto& at = way_.top();
    for (;;) {
        if (::lseek(way_.here(), at.resume, SEEK_SET) < 0) {
            ::lseek(way_.here(), 0, SEEK_SET);
        }
        directory_reader names(way_.here());
        for (;;) {
            if (passed(until_)) {
                return os_code(ETIMEDOUT);
            }
            const auto one = names.next();
            if (!one && !pass_over(one.error())) {
                return one.error();
            }
            if (!one || !*one) {
                break;
            }
            std::string name((*one)->name);
            if (::unlinkat(way_.here(), name.c_str(), 0) == 0) {
                at.removed = progress_ = true;
            } else if (errno == EISDIR || errno == EPERM) {
                if (::unlinkat(way_.here(), name.c_str(), AT_REMOVEDIR) == 0) {
                    at.removed = progress_ = true; // there was nothing in it
                    continue;
                }
                at.resume = (*one)->after;
                return std::optional(std::move(name));
            } else if (const auto failed = os_code(errno); failed != os_code(ENOENT) && !pass_over(failed)) {
                return failed;
            }
        }
        if (!at.removed) {
            return std::optional<std::string>();
        }
        at.removed = false; // names may have been skipped: look again
        at.resume = 0;
    }
}

error_code tree_removal::descend(const std::string& name) {
    const auto failed = way_.enter(way_.here(), name, thorough_);
    if (failed) {
        return failed == os_code(ENOENT) || pass_over(failed) ? error_code() : failed;
    }
    if (stuck_.contains(way_.top().which)) {
        const auto left = way_.leave();
        return left ? error_code() : left.error();
    }
    return {};
}

error_code tree_removal::finish(const descent::level& left) {
    const auto failed = remove_empty(way_.here(), left.name);
    if (!failed || (failed == os_code(ENOTEMPTY) && !thorough_)) {
        way_.top().removed = progress_ = true; // one that was filled meanwhile comes again
        return {};
    }
    if (!pass_over(failed) || stuck_.size() == most_stuck) {
        return failed;
    }
    stuck_.insert(left.which);
    return {};
}

error_code tree_removal::empty() {
    for (;;) {
        const auto below = clear();
        if (!below) {
            return below.error();
        }
        if (*below) {
            if (const auto failed = descend(**below)) {
                return failed;
            }
            continue;
        }
        if (way_.at_start()) {
            return {};
        }
        const auto left = way_.leave();
        if (!left) {
            return left.error();
        }
        if (const auto failed = finish(*left)) {
            return failed;
        }
    }
}

} // namespace

error_code remove_entry(const node& directory, const std::string& name, time_limit until, removal how) {
    const int parent = directory.handle.get();
    if (const auto failed = unlink_entry(parent, name); failed != os_code(EISDIR)) {
        return failed;
    }
    return tree_removal(parent, name, until, how).run();
}

} // namespace sandboxd::hostfs::blocking
