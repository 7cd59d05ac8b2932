#include "agent/file_replace.hpp"

#include "agent/system.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstdio> // RENAME_EXCHANGE
#include <functional>

namespace sandboxd::agent {

namespace {

constexpr mode_t new_mode = 0644;
constexpr mode_t all_bits = 07777;

off_t lock_position(const target& where) {
    struct stat status{};
    if (fstat(where.directory.get(), &status) != 0) {
        return 0;
    }
    std::size_t hash = std::hash<std::string_view>()(where.name);
    hash = (hash ^ static_cast<std::size_t>(status.st_ino)) * 0x9E3779B97F4A7C15U;
    hash = (hash ^ static_cast<std::size_t>(status.st_dev)) * 0x9E3779B97F4A7C15U;
    return static_cast<off_t>(hash >> 2);
}

void set_lock(int locks, off_t at, short kind) {
    struct flock one{};
    one.l_type = kind;
    one.l_whence = SEEK_SET;
    one.l_start = at;
    one.l_len = 1;
    while (fcntl(locks, F_SETLKW, &one) != 0 && errno == EINTR) {
    }
}

std::string fresh_name() {
    char bytes[16];
    random_bytes(bytes);
    std::string out = ".sandboxd-";
    for (const char byte : bytes) {
        char text[3];
        std::snprintf(text, sizeof text, "%02x", static_cast<unsigned>(static_cast<unsigned char>(byte)));
        out += text;
    }
    return out;
}

/// What the temporary file is made with: never more than its content may be seen with at the end. Its group
/// may be another at first, the directory's.
mode_t first_mode(const target& where) {
    if (!where.exists) {
        return new_mode;
    }
    const mode_t mode = where.status.st_mode & 0777;
    const bool group_like_others = (mode >> 3 & 7 & ~mode) == 0;
    return where.status.st_uid == geteuid() && group_like_others ? mode : 0600;
}

/// Nothing new can be made in the directory, which says nothing about the files in it.
bool directory_is_closed(int failed) {
    return failed == EACCES || failed == EPERM || failed == EROFS;
}

/// The target itself can't be replaced.
bool is_pinned(int failed) {
    return failed == EBUSY || failed == EXDEV || directory_is_closed(failed);
}

} // namespace

path_lock::path_lock(int locks, const target& where) : locks_(locks) {
    if (locks_ >= 0) {
        at_ = lock_position(where);
        set_lock(locks_, at_, F_WRLCK);
    }
}

path_lock::~path_lock() {
    if (locks_ >= 0) {
        set_lock(locks_, at_, F_UNLCK);
    }
}

replacement::~replacement() {
    drop_temporary();
}

void replacement::drop_temporary() {
    if (!temporary_.empty()) {
        unlinkat(where_.directory.get(), temporary_.c_str(), 0);
        temporary_.clear();
    }
}

int replacement::begin(target where) {
    where_ = std::move(where);
    if (where_.exists && faccessat(where_.directory.get(), where_.name.c_str(), W_OK, 0) != 0) {
        return errno; // to replace it would need no right to it
    }
    const auto name = fresh_name();
    constexpr int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    content_.reset(openat(where_.directory.get(), name.c_str(), flags, first_mode(where_)));
    if (content_.valid()) {
        temporary_ = name;
        return 0;
    }
    if (!where_.exists || !directory_is_closed(errno)) {
        return errno;
    }
    content_.reset(memfd_create("content", MFD_CLOEXEC));
    return content_.valid() ? 0 : errno;
}

int replacement::append(std::string_view bytes) {
    size_ += bytes.size();
    return write_fully(content_.get(), bytes);
}

int replacement::look_again() {
    descriptor again(fcntl(where_.directory.get(), F_DUPFD_CLOEXEC, 3));
    target fresh;
    const int wrong = find_target(std::move(again), where_.name, fresh);
    where_.exists = fresh.exists;
    where_.status = fresh.status;
    return wrong != 0 || fresh.name == where_.name ? wrong : EAGAIN; // it has become a link meanwhile
}

int replacement::commit() {
    if (temporary_.empty()) {
        return put_in_place();
    }
    int failed = adopt_identity();
    failed = failed != 0 ? failed : rename_over();
    if (failed == 0) {
        return 0;
    }
    return where_.exists && is_pinned(failed) ? put_in_place() : failed;
}

/// Exchanged with an old file, which then goes: a rename over it makes ext4 write the new one to the disk at
/// once, and the next rename waits for that.
int replacement::rename_over() {
    const int at = where_.directory.get();
    const auto exchange = [&] {
        return syscall(SYS_renameat2, at, temporary_.c_str(), at, where_.name.c_str(), RENAME_EXCHANGE) == 0;
    };
    if (where_.exists && exchange()) {
        if (unlinkat(at, temporary_.c_str(), 0) != 0 && errno == EISDIR) {
            // It has become a directory meanwhile, which goes back to its place.
            return exchange() ? EISDIR : errno;
        }
        temporary_.clear();
        return 0;
    }
    if (renameat(at, temporary_.c_str(), at, where_.name.c_str()) != 0) {
        return errno;
    }
    temporary_.clear();
    return 0;
}

/// The owner first: a change of owner takes bits of the mode away.
int replacement::adopt_identity() const {
    struct stat own{};
    if (fstat(content_.get(), &own) != 0) {
        return errno;
    }
    const auto& old = where_.status;
    const bool changes_owner = where_.exists && (own.st_uid != old.st_uid || own.st_gid != old.st_gid);
    if (changes_owner && fchown(content_.get(), old.st_uid, old.st_gid) != 0) {
        return errno;
    }
    const mode_t mode = where_.exists ? old.st_mode & all_bits : new_mode;
    if (!changes_owner && (own.st_mode & all_bits) == mode) {
        return 0;
    }
    return fchmod(content_.get(), mode) == 0 ? 0 : errno;
}

int replacement::put_in_place() const {
    constexpr int flags = O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    const descriptor file(openat(where_.directory.get(), where_.name.c_str(), flags));
    struct stat status{};
    if (!file.valid() || fstat(file.get(), &status) != 0) {
        return errno;
    }
    if (!S_ISREG(status.st_mode)) {
        return -1;
    }
    // Where there is no room for the new content, the old is still whole.
    if (size_ > 0 && fallocate(file.get(), FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(size_)) != 0 &&
        errno != EOPNOTSUPP && errno != ENOSYS) {
        return errno;
    }
    char buffer[16 * 1024];
    if (lseek(content_.get(), 0, SEEK_SET) != 0) {
        return errno;
    }
    ssize_t count = 0;
    while ((count = read_fully(content_.get(), buffer, sizeof buffer)) > 0) {
        if (const int failed = write_fully(file.get(), {buffer, static_cast<std::size_t>(count)})) {
            return failed;
        }
    }
    return count == 0 && ftruncate(file.get(), static_cast<off_t>(size_)) == 0 ? 0 : errno;
}

} // namespace sandboxd::agent
