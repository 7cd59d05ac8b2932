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

/// A temporary file, removed unless it took its place.
class temporary {
public:
    temporary(int directory, const std::string& name)
        : directory_(directory), name_("." + name + "." + core::random_hex(6) + ".tmp") {}
    temporary(const temporary&) = delete;
    temporary& operator=(const temporary&) = delete;
    ~temporary() {
        if (there_) {
            ::unlinkat(directory_, name_.c_str(), 0);
        }
    }

    [[nodiscard]] os_result<core::unique_fd> create(mode_t mode) {
        core::unique_fd file(
            ::openat(directory_, name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
        if (!file) {
            return os_code(errno);
        }
        there_ = true;
        return file;
    }

    [[nodiscard]] error_code rename_to(const std::string& name) {
        if (::renameat(directory_, name_.c_str(), directory_, name.c_str()) != 0) {
            return os_code(errno);
        }
        there_ = false;
        return {};
    }

private:
    int directory_;
    std::string name_;
    bool there_ = false;
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
    temporary fresh(there, name);
    auto file = fresh.create(kept->value_or(0666));
    if (!file) {
        return file.error();
    }
    if (*kept && ::fchmod(file->get(), **kept) != 0) {
        return os_code(errno);
    }
    if (const auto failed = write_all(file->get(), content, until)) {
        return failed;
    }
    // Some file systems say only now that there was no room: the old content is still there.
    if (::close(file->release()) != 0 && errno != EINTR) {
        return os_code(errno);
    }
    return passed(until) ? os_code(ETIMEDOUT) : fresh.rename_to(name);
}

} // namespace sandboxd::hostfs::blocking
