#include "agent/directory.hpp"

#include <fcntl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

namespace sandboxd::agent {

namespace {

/// The head of an entry as getdents64 writes it; the name follows.
struct raw_entry {
    std::uint64_t inode;
    std::int64_t offset;
    std::uint16_t length;
    std::uint8_t type;
};
constexpr std::size_t name_at = offsetof(raw_entry, type) + 1;

} // namespace

int directory_reader::open(int at, const char* path, bool follow) {
    constexpr int flags = O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    own_.reset(openat(at, path, flags | (follow ? 0 : O_NOFOLLOW)));
    const int failed = own_.valid() ? 0 : errno;
    use(own_.get());
    return failed;
}

void directory_reader::use(int fd) {
    fd_ = fd;
    size_ = at_ = 0;
    error_ = 0;
}

bool directory_reader::next(directory_entry& out) {
    for (;;) {
        if (at_ == size_) {
            if (!buffer_) {
                buffer_.reset(new char[capacity]);
            }
            const auto count = syscall(SYS_getdents64, fd_, buffer_.get(), capacity);
            error_ = count < 0 ? errno : 0;
            if (count <= 0) {
                return false;
            }
            size_ = static_cast<std::size_t>(count);
            at_ = 0;
        }
        raw_entry head{};
        std::memcpy(&head, buffer_.get() + at_, name_at);
        const char* const name = buffer_.get() + at_ + name_at;
        at_ += head.length;
        if (std::strcmp(name, ".") != 0 && std::strcmp(name, "..") != 0) {
            out = {name, head.type};
            return true;
        }
    }
}

} // namespace sandboxd::agent
