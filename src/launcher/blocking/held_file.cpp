#include "launcher/blocking/held_file.hpp"

#include "launcher/blocking/files.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <fcntl.h>
#include <unistd.h>

namespace sandboxd::launcher::blocking {

namespace {

/// Half of what the kernel gives: the file is filled within the other.
std::chrono::milliseconds patience_of_kernel() {
    const auto text = read_file("/proc/sys/fs/lease-break-time", 32);
    int seconds = 0;
    if (!text || std::from_chars(text->data(), text->data() + text->size(), seconds).ec != std::errc()) {
        return std::chrono::milliseconds(0);
    }
    return std::chrono::milliseconds(500) * std::max(seconds, 0);
}

} // namespace

result<held_file> held_file::create(const std::string& path, unsigned mode,
                                    std::chrono::milliseconds patience) {
    const auto until = std::chrono::steady_clock::now() + std::min(patience, patience_of_kernel());
    core::unique_fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode));
    if (!fd) {
        return os_error(path, errno);
    }
    ::signal(SIGIO, SIG_IGN); // says that somebody waits, and would end this process
    if (::fcntl(fd.get(), F_SETLEASE, F_WRLCK) != 0) {
        const auto failure = os_error("a lease on " + path, errno);
        ::unlink(path.c_str());
        return failure;
    }
    return held_file(std::move(fd), path, until);
}

result<void> held_file::fill(std::string_view bytes) {
    while (!bytes.empty()) {
        const auto count = ::write(fd_.get(), bytes.data(), bytes.size());
        if (count < 0 && errno != EINTR) {
            return os_error(path_, errno);
        }
        bytes.remove_prefix(count > 0 ? static_cast<std::size_t>(count) : 0);
    }
    // Said, and not left to the close: a process that was forked meanwhile may still have the descriptor.
    static_cast<void>(::fcntl(fd_.get(), F_SETLEASE, F_UNLCK)); // fails where the kernel has ended it
    fd_.reset();
    return {};
}

} // namespace sandboxd::launcher::blocking
