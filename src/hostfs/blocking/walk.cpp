#include "hostfs/blocking/walk.hpp"

#include "hostfs/paths.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace sandboxd::hostfs::blocking {

namespace {

constexpr int handle_only = O_PATH | O_NOFOLLOW | O_CLOEXEC;

/// Longer paths are walked in pieces: the kernel takes less than 4096 bytes at a time.
constexpr std::size_t longest_piece = 4000;

int open_beneath(int directory, const char* path) noexcept {
    struct open_how how{};
    how.flags = handle_only;
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV;
    return static_cast<int>(::syscall(SYS_openat2, directory, path, &how, sizeof how));
}

os_result<node> examine(core::unique_fd handle) {
    node out;
    if (::fstat(handle.get(), &out.about) != 0) {
        return os_code(errno);
    }
    // Of a link a handle can be had: to the link itself.
    if (S_ISLNK(out.about.st_mode)) {
        return os_code(ELOOP);
    }
    out.handle = std::move(handle);
    return out;
}

} // namespace

error_code os_code(int errnum) noexcept {
    return {errnum, boost::system::system_category()};
}

bool passed(time_limit until) noexcept {
    return std::chrono::steady_clock::now() >= until;
}

walk_kind best_walk() noexcept {
    static const walk_kind found = [] {
        const core::unique_fd root(open_beneath(AT_FDCWD, "."));
        return root || (errno != ENOSYS && errno != EPERM) ? walk_kind::kernel : walk_kind::components;
    }();
    return found;
}

os_result<workspace> workspace::open(const std::string& root, const std::string& id, walk_kind how) {
    if (!is_plain_name(id)) {
        return os_code(ENOENT);
    }
    constexpr int step = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    const core::unique_fd all(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!all) {
        return os_code(errno);
    }
    const core::unique_fd own(::openat(all.get(), id.c_str(), step));
    if (!own) {
        return os_code(errno == ENOTDIR ? ENOENT : errno);
    }
    core::unique_fd top(::openat(own.get(), "workspace", step));
    if (!top) {
        return os_code(errno == ENOTDIR ? ENOENT : errno);
    }
    struct stat about{};
    if (::fstat(top.get(), &about) != 0) {
        return os_code(errno);
    }
    return workspace(std::move(top), about.st_dev, how);
}

os_result<node> workspace::child(int directory, const std::string& name) const {
    core::unique_fd handle(::openat(directory, name.c_str(), handle_only));
    if (!handle) {
        return os_code(errno);
    }
    auto found = examine(std::move(handle));
    if (found && found->about.st_dev != device_) {
        return os_code(EXDEV);
    }
    return found;
}

os_result<node> workspace::child_or_new(int directory, const std::string& name) const {
    auto found = child(directory, name);
    if (!found && found.error() == os_code(ENOENT)) {
        if (::mkdirat(directory, name.c_str(), 0777) != 0 && errno != EEXIST) {
            return os_code(errno);
        }
        found = child(directory, name);
    }
    return found;
}

os_result<node> workspace::find_by_kernel(int directory, const std::string& relative) const {
    core::unique_fd handle(open_beneath(directory, relative.c_str()));
    if (!handle) {
        return os_code(errno);
    }
    return examine(std::move(handle));
}

os_result<node> workspace::find_by_components(std::string_view relative) const {
    node at;
    int directory = top_.get();
    for (std::size_t begin = 0; begin <= relative.size();) {
        const auto end = std::min(relative.find('/', begin), relative.size());
        auto next = child(directory, std::string(relative.substr(begin, end - begin)));
        if (!next) {
            return next.error();
        }
        at = std::move(*next);
        directory = at.handle.get();
        begin = end + 1;
    }
    return at;
}

os_result<node> workspace::find(std::string_view relative) const {
    if (relative.empty()) {
        return examine(core::unique_fd(::openat(top_.get(), ".", handle_only)));
    }
    if (how_ == walk_kind::components) {
        return find_by_components(relative);
    }
    node at;
    int directory = top_.get();
    while (relative.size() > longest_piece) {
        const auto slash = relative.rfind('/', longest_piece);
        if (slash == std::string_view::npos) {
            return os_code(ENAMETOOLONG);
        }
        auto next = find_by_kernel(directory, std::string(relative.substr(0, slash)));
        if (!next) {
            return next.error();
        }
        at = std::move(*next);
        directory = at.handle.get();
        relative.remove_prefix(slash + 1);
    }
    return find_by_kernel(directory, std::string(relative));
}

os_result<node> workspace::find_directory(std::string_view relative) const {
    auto found = find(relative);
    if (found && !found->is_directory()) {
        return os_code(ENOTDIR);
    }
    return found;
}

os_result<node> workspace::make_directories(std::string_view relative, time_limit until) const {
    auto found = find_directory(relative);
    if (found || found.error() != os_code(ENOENT)) {
        return found;
    }
    node at;
    int directory = top_.get();
    for (std::size_t begin = 0; begin <= relative.size();) {
        if (passed(until)) {
            return os_code(ETIMEDOUT);
        }
        const auto end = std::min(relative.find('/', begin), relative.size());
        auto next = child_or_new(directory, std::string(relative.substr(begin, end - begin)));
        if (!next) {
            return next.error();
        }
        if (!next->is_directory()) {
            return os_code(ENOTDIR);
        }
        at = std::move(*next);
        directory = at.handle.get();
        begin = end + 1;
    }
    return at;
}

os_result<core::unique_fd> open_file(const node& found) {
    if (!found.is_file()) {
        return os_code(found.is_directory() ? EISDIR : EOPNOTSUPP);
    }
    // Through the handle, which is known to be a regular file: by its name it could be a FIFO by now.
    const std::string same = "/proc/self/fd/" + std::to_string(found.handle.get());
    core::unique_fd file(::open(same.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
    if (!file) {
        return os_code(errno == ENOENT ? EIO : errno); // ENOENT: there is no /proc
    }
    return file;
}

os_result<core::unique_fd> open_directory(const node& found) {
    return found.is_directory() ? open_directory(found.handle.get()) : os_code(ENOTDIR);
}

os_result<core::unique_fd> open_directory(int handle) {
    core::unique_fd directory(::openat(handle, ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!directory) {
        return os_code(errno);
    }
    return directory;
}

} // namespace sandboxd::hostfs::blocking
