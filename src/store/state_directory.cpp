#include "store/state_directory.hpp"

#include "core/random.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <string_view>
#include <thread>
#include <utility>

namespace sandboxd::store {

namespace {

constexpr std::size_t small_file = 4096; ///< more than any of ours holds

result<void> make_directory(const std::string& path) {
    for (std::size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1)) {
        const auto parent = path.substr(0, at);
        if (::mkdir(parent.c_str(), 0755) != 0 && errno != EEXIST) {
            return os_error("creating " + parent, errno);
        }
    }
    if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
        return os_error("creating the state directory " + path + " (SANDBOXD_STATE_DIR)", errno);
    }
    struct stat found{};
    if (::stat(path.c_str(), &found) != 0) {
        return os_error("the state directory " + path, errno);
    }
    if (!S_ISDIR(found.st_mode)) {
        return error{errc::invalid, "the state directory " + path + " is not a directory"};
    }
    if ((found.st_mode & 022U) != 0) {
        return error{errc::invalid,
                     "the state directory " + path + " can be written by others: chmod 0700 it"};
    }
    return {};
}

/// The whole of a small file; nothing when there is none.
result<std::optional<std::string>> read_small(const std::string& path, bool secret) {
    const core::unique_fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (!fd) {
        if (errno == ENOENT) {
            return std::optional<std::string>();
        }
        return os_error(path, errno);
    }
    struct stat found{};
    if (::fstat(fd.get(), &found) != 0) {
        return os_error(path, errno);
    }
    if (!S_ISREG(found.st_mode)) {
        return error{errc::invalid, path + " is not a regular file"};
    }
    if (secret && (found.st_mode & 077U) != 0) {
        return error{errc::invalid, path + " can be read or written by others: chmod 0600 it"};
    }
    std::string text(small_file, '\0');
    std::size_t size = 0;
    while (size < text.size()) {
        const auto got = ::read(fd.get(), text.data() + size, text.size() - size);
        if (got < 0) {
            if (errno == EINTR) {
                continue;
            }
            return os_error(path, errno);
        }
        if (got == 0) {
            break;
        }
        size += static_cast<std::size_t>(got);
    }
    text.resize(size);
    return std::optional<std::string>(std::move(text));
}

result<void> write_whole(int fd, std::string_view bytes, const std::string& path) {
    while (!bytes.empty()) {
        const auto put = ::write(fd, bytes.data(), bytes.size());
        if (put < 0) {
            if (errno == EINTR) {
                continue;
            }
            return os_error(path, errno);
        }
        bytes.remove_prefix(static_cast<std::size_t>(put));
    }
    return {};
}

/// All or nothing, also after a crash: a temporary file, synced and renamed over.
result<void> write_small(const std::string& directory, const std::string& name, std::string_view bytes) {
    const std::string path = directory + "/" + name;
    const std::string temporary = path + ".new";
    ::unlink(temporary.c_str());
    const core::unique_fd fd(
        ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!fd) {
        return os_error(temporary, errno);
    }
    if (auto written = write_whole(fd.get(), bytes, temporary); !written) {
        return written;
    }
    if (::fsync(fd.get()) != 0 || ::rename(temporary.c_str(), path.c_str()) != 0) {
        return os_error(path, errno);
    }
    const core::unique_fd parent(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!parent || ::fsync(parent.get()) != 0) {
        return os_error(directory, errno);
    }
    return {};
}

bool is_uuid(std::string_view text) {
    if (text.size() != 36) {
        return false;
    }
    for (std::size_t i = 0; i < text.size(); ++i) {
        const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        const auto c = static_cast<unsigned char>(text[i]);
        if (dash ? c != '-' : (std::isxdigit(c) == 0 || std::isupper(c) != 0)) {
            return false;
        }
    }
    return true;
}

std::string without_newline(std::string text) {
    if (!text.empty() && text.back() == '\n') {
        text.pop_back();
    }
    return text;
}

} // namespace

result<std::unique_ptr<state_directory>> state_directory::open(std::string path,
                                                               std::chrono::milliseconds patience) {
    while (path.size() > 1 && path.back() == '/') {
        path.pop_back();
    }
    if (path.empty() || path.front() != '/') {
        return error{errc::invalid, "the state directory '" + path + "' is not an absolute path"};
    }
    if (auto made = make_directory(path); !made) {
        return made.error();
    }
    std::unique_ptr<state_directory> opened(new state_directory(std::move(path)));
    if (auto locked = opened->take_lock(patience); !locked) {
        return locked.error();
    }
    if (auto read = opened->read_identity(); !read) {
        return read.error();
    }
    return opened;
}

result<void> state_directory::take_lock(std::chrono::milliseconds patience) {
    const std::string path = path_ + "/lock";
    lock_.reset(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!lock_) {
        return os_error(path, errno);
    }
    const auto until = std::chrono::steady_clock::now() + patience;
    while (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK && errno != EINTR) {
            return os_error(path, errno);
        }
        if (std::chrono::steady_clock::now() >= until) {
            auto holder = read_small(path, false);
            const std::string pid = holder && *holder ? without_newline(**holder) : std::string();
            lock_.reset();
            return error{errc::unavailable,
                         "the state directory " + path_ + " is in use by another sandboxd" +
                             (pid.empty() ? std::string() : " (process " + pid + " or its launcher)") +
                             ": stop it, or give this one another SANDBOXD_STATE_DIR"};
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    const std::string pid = std::to_string(::getpid()) + "\n";
    if (::ftruncate(lock_.get(), 0) != 0 || ::lseek(lock_.get(), 0, SEEK_SET) != 0) {
        return os_error(path, errno);
    }
    return write_whole(lock_.get(), pid, path);
}

result<void> state_directory::read_identity() {
    auto uuid = read_small(path_ + "/uuid", false);
    auto key = read_small(path_ + "/token.key", true);
    auto backend = read_small(path_ + "/backend", false);
    for (const auto* one : {&uuid, &key, &backend}) {
        if (!*one) {
            return one->error();
        }
    }
    if (!*uuid) {
        *uuid = core::random_uuid();
        if (auto written = write_small(path_, "uuid", **uuid + "\n"); !written) {
            return written;
        }
    }
    uuid_ = without_newline(**uuid);
    if (!is_uuid(uuid_)) {
        return error{errc::invalid, path_ + "/uuid does not hold a UUID"};
    }
    if (!*key) {
        std::array<unsigned char, 32> fresh{};
        core::random_bytes(fresh);
        *key = std::string(fresh.begin(), fresh.end());
        if (auto written = write_small(path_, "token.key", **key); !written) {
            return written;
        }
    }
    if ((*key)->size() != key_.size()) {
        return error{errc::invalid, path_ + "/token.key holds " + std::to_string((*key)->size()) +
                                        " bytes instead of 32: restore it, or remove it (every session token "
                                        "is void then)"};
    }
    std::copy((*key)->begin(), (*key)->end(), key_.begin());
    if (*backend) {
        backend_ = without_newline(**backend);
    }
    return {};
}

std::optional<std::string> state_directory::remembered_backend(const std::string& path) {
    const auto read = read_small(path + "/backend", false);
    return read && *read ? std::optional(without_newline(**read)) : std::nullopt;
}

result<void> state_directory::remember_backend(const std::string& name) {
    if (backend_ == name) {
        return {};
    }
    if (auto written = write_small(path_, "backend", name + "\n"); !written) {
        return written;
    }
    backend_ = name;
    return {};
}

result<void> state_directory::give_to(uid_t uid, gid_t gid) {
    if (::fchown(lock_.get(), uid, gid) != 0 || ::lchown(path_.c_str(), uid, gid) != 0) {
        return os_error(path_, errno);
    }
    for (const char* name : {"uuid", "token.key", "backend", "state.db", "state.db-wal", "state.db-shm"}) {
        const std::string path = path_ + "/" + name;
        if (::lchown(path.c_str(), uid, gid) != 0 && errno != ENOENT) {
            return os_error(path, errno);
        }
    }
    return {};
}

} // namespace sandboxd::store
