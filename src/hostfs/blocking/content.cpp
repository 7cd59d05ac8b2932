#include "hostfs/blocking/content.hpp"

#include "core/random.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <optional>
#include <unistd.h>

namespace sandboxd::hostfs::blocking {

namespace {

/// Read or written between two looks at the clock.
constexpr std::size_t step_size = 1024 * 1024;
constexpr std::size_t longest_name = 237;
constexpr mode_t permission_bits = 0777;

/// What is to take a file's place. It has no name before, where the file system can: nothing of it is left
/// then when the service is killed while it is written.
class successor {
public:
    successor(int directory, const std::string& name)
        : directory_(directory), name_(name), other_("." + name + "." + core::random_hex(6) + ".tmp") {}
    successor(const successor&) = delete;
    successor& operator=(const successor&) = delete;
    ~successor() {
        if (there_) {
            ::unlinkat(directory_, other_.c_str(), 0);
        }
    }

    [[nodiscard]] int file() const noexcept { return file_.get(); }

    [[nodiscard]] error_code create(mode_t mode) {
        if (::access("/proc/self/fd", X_OK) == 0) { // by way of which it gets its name
            file_.reset(::openat(directory_, ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, mode));
            if (file_ || (errno != EOPNOTSUPP && errno != EISDIR)) {
                return file_ ? error_code() : os_code(errno);
            }
        }
        file_.reset(
            ::openat(directory_, other_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
        there_ = static_cast<bool>(file_);
        return there_ ? error_code() : os_code(errno);
    }

    [[nodiscard]] error_code take_place(bool of_another) {
        if (!there_ && !of_another) {
            const auto failed = link_as(name_);
            if (failed != os_code(EEXIST)) {
                return failed;
            }
        }
        if (!there_) {
            if (const auto failed = link_as(other_)) {
                return failed;
            }
            there_ = true;
        }
        if (::renameat(directory_, other_.c_str(), directory_, name_.c_str()) != 0) {
            return os_code(errno);
        }
        there_ = false;
        return {};
    }

private:
    [[nodiscard]] error_code link_as(const std::string& name) const {
        const std::string it = "/proc/self/fd/" + std::to_string(file());
        const int done = ::linkat(AT_FDCWD, it.c_str(), directory_, name.c_str(), AT_SYMLINK_FOLLOW);
        return done == 0 ? error_code() : os_code(errno);
    }

    int directory_;
    std::string name_;
    std::string other_; ///< while it stands beside the file
    bool there_ = false;
    core::unique_fd file_;
};

/// The permission bits of the regular file `name`; nothing when there is none.
os_result<std::optional<mode_t>> mode_to_keep(int directory, const std::string& name) {
    struct stat about{};
    if (::fstatat(directory, name.c_str(), &about, AT_SYMLINK_NOFOLLOW) != 0) {
        if (errno == ENOENT) {
            return std::optional<mode_t>();
        }
        return os_code(errno);
    }
    if (S_ISREG(about.st_mode)) {
        return std::optional(about.st_mode & permission_bits);
    }
    return os_code(S_ISDIR(about.st_mode) ? EISDIR : S_ISLNK(about.st_mode) ? ELOOP : EOPNOTSUPP);
}

error_code write_all(int file, std::string_view content, time_limit until) {
    while (!content.empty()) {
        if (passed(until)) {
            return os_code(ETIMEDOUT);
        }
        const auto done = ::write(file, content.data(), std::min(content.size(), step_size));
        if (done < 0 && errno != EINTR) {
            return os_code(errno);
        }
        content.remove_prefix(done < 0 ? 0 : static_cast<std::size_t>(done));
    }
    return {};
}

} // namespace

os_result<std::string> read_content(const node& found, std::uint64_t max_bytes, time_limit until) {
    const auto file = open_file(found);
    if (!file) {
        return file.error();
    }
    const auto size = static_cast<std::uint64_t>(found.about.st_size);
    if (size > max_bytes) {
        return os_code(EFBIG);
    }
    std::string all;
    // One byte more than there should be, to see the end.
    std::size_t step = std::min<std::size_t>(size + 1, step_size);
    all.reserve(size + 1);
    for (;;) {
        if (passed(until)) {
            return os_code(ETIMEDOUT);
        }
        const std::size_t at = all.size();
        all.resize(at + step);
        const auto got = ::read(file->get(), all.data() + at, step);
        if (got < 0 && errno != EINTR) {
            return os_code(errno);
        }
        all.resize(at + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
        if (got == 0) {
            return all;
        }
        if (all.size() > max_bytes) {
            return os_code(EFBIG);
        }
        step = std::max<std::size_t>(1, std::min<std::size_t>(all.capacity() - all.size(), step_size));
    }
}

error_code replace_content(const node& directory, const std::string& name, std::string_view content,
                           time_limit until) {
    const int there = directory.handle.get();
    const auto kept = mode_to_keep(there, name);
    if (!kept) {
        return kept.error();
    }
    if (name.size() > longest_name) {
        return os_code(ENAMETOOLONG);
    }
    successor fresh(there, name);
    if (const auto failed = fresh.create(kept->value_or(0666))) {
        return failed;
    }
    if (*kept && ::fchmod(fresh.file(), **kept) != 0) {
        return os_code(errno);
    }
    if (const auto failed = write_all(fresh.file(), content, until)) {
        return failed;
    }
    // Some file systems say only at a close that there was no room: the old content is still there.
    const int twin = ::fcntl(fresh.file(), F_DUPFD_CLOEXEC, 0);
    if (twin < 0 || (::close(twin) != 0 && errno != EINTR)) {
        return os_code(errno);
    }
    return passed(until) ? os_code(ETIMEDOUT) : fresh.take_place(kept->has_value());
}

} // namespace sandboxd::hostfs::blocking
