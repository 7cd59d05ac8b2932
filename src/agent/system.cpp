#include "agent/system.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/syscall.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>

namespace sandboxd::agent {

instant now() {
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<instant>(time.tv_sec) * second + time.tv_nsec;
}

std::uint64_t unix_microseconds() {
    timespec time{};
    clock_gettime(CLOCK_REALTIME, &time);
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000 +
           static_cast<std::uint64_t>(time.tv_nsec / 1000);
}

void close_from(int first) {
    if (syscall(SYS_close_range, static_cast<unsigned>(first), ~0U, 0U) == 0) {
        return;
    }
    DIR* const directory = opendir("/proc/self/fd");
    if (directory == nullptr) {
        for (int fd = first; fd < 65'536; ++fd) {
            close(fd);
        }
        return;
    }
    while (const dirent* const entry = readdir(directory)) {
        const int fd = std::atoi(entry->d_name);
        if (fd >= first && fd != dirfd(directory)) {
            close(fd);
        }
    }
    closedir(directory);
}

void leave_standard_streams() {
    descriptor null(open("/dev/null", O_RDWR | O_CLOEXEC));
    if (!null.valid()) {
        null = std::move(make_pipe().read); // always at its end
    }
    for (int fd = 0; fd < 3; ++fd) {
        dup2(null.get(), fd);
    }
}

void keep_only(std::span<int> files, int null) {
    constexpr int first = 3;
    const int above = first + static_cast<int>(files.size());
    for (auto& file : files) {
        file = fcntl(file, F_DUPFD_CLOEXEC, above);
    }
    const int source = fcntl(null, F_DUPFD, above);
    for (int fd = 0; fd < first; ++fd) {
        dup2(source, fd);
    }
    int next = first;
    for (auto& file : files) {
        if (file < 0 || dup3(file, next, O_CLOEXEC) < 0) {
            close(next);
            file = -1;
        } else {
            file = next;
        }
        ++next;
    }
    close_from(next);
}

void set_nonblocking(int fd) {
    const int flags = fcntl(fd, F_GETFL);
    fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

void random_bytes(char (&out)[16]) {
    if (getrandom(out, sizeof out, 0) == sizeof out) {
        return;
    }
    const descriptor file(open("/dev/urandom", O_RDONLY | O_CLOEXEC));
    if (read(file.get(), out, sizeof out) != sizeof out) {
        const auto time = unix_microseconds();
        std::snprintf(out, sizeof out, "%015llx", static_cast<unsigned long long>(time));
    }
}

pipe_ends make_pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return {};
    }
    return {descriptor(ends[0]), descriptor(ends[1])};
}

terminal_ends make_terminal(unsigned short rows, unsigned short columns) {
    terminal_ends out;
    out.master.reset(open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC));
    int unlock = 0;
    if (!out.master.valid() || ioctl(out.master.get(), TIOCSPTLCK, &unlock) != 0) {
        return {};
    }
    resize_terminal(out.master.get(), rows, columns);
    out.slave.reset(ioctl(out.master.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
    if (!out.slave.valid()) {
        unsigned number = 0;
        char path[32];
        ioctl(out.master.get(), TIOCGPTN, &number);
        std::snprintf(path, sizeof path, "/dev/pts/%u", number);
        out.slave.reset(open(path, O_RDWR | O_NOCTTY | O_CLOEXEC));
    }
    if (!out.slave.valid()) {
        return {};
    }
    set_nonblocking(out.master.get());
    return out;
}

void resize_terminal(int master, unsigned short rows, unsigned short columns) {
    const winsize size{rows, columns, 0, 0};
    ioctl(master, TIOCSWINSZ, &size);
}

std::size_t readable_bytes(int fd) {
    int count = 0;
    return ioctl(fd, FIONREAD, &count) == 0 && count > 0 ? static_cast<std::size_t>(count) : 0;
}

} // namespace sandboxd::agent
