#include "launcher/server.hpp"

#include "launcher/blocking/files.hpp"
#include "launcher/runtimes/runtime.hpp"
#include "launcher/worker.hpp"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace sandboxd::launcher {

namespace {

constexpr int socket_buffer = 4 * 1024 * 1024;

result<void> make_state_directories(const launcher_options& options) {
    std::vector<std::string> names{"/oci", "/images"};
    for (const auto* runtime : all_runtimes()) {
        names.push_back("/" + std::string(runtime->name()));
    }
    for (const auto& name : names) {
        const auto path = options.state_dir + name;
        if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
            return os_error(path, errno);
        }
    }
    for (const char* name : {"", "/uids", "/mnt"}) {
        if (auto made = blocking::make_directories(options.run_dir + name, 0711); !made) {
            return made;
        }
    }
    return {};
}

/// The launcher has nothing open but its socket, the lock and standard error.
void keep_only(int socket, int lock) {
    const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    ::dup2(null, 0);
    ::dup2(null, 1);
    const int low = std::min(socket, lock >= 0 ? lock : socket);
    const int high = std::max(socket, lock);
    ::syscall(SYS_close_range, 3U, static_cast<unsigned>(low) - 1U, 0U);
    if (high - low > 1) {
        ::syscall(SYS_close_range, static_cast<unsigned>(low) + 1U, static_cast<unsigned>(high) - 1U, 0U);
    }
    ::syscall(SYS_close_range, static_cast<unsigned>(high) + 1U, ~0U, 0U);
    ::fcntl(socket, F_SETFD, FD_CLOEXEC);
    if (lock >= 0) {
        ::fcntl(lock, F_SETFD, FD_CLOEXEC);
    }
}

/// A signal to the whole process group, or to the control group, must not cut off what is in progress: the
/// launcher leaves when the service does.
void ignore_stop_signals() {
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGUSR1, SIGUSR2}) {
        ::signal(number, SIG_IGN);
    }
}

} // namespace

result<core::unique_fd> start(const launcher_options& options) {
    if (::geteuid() != 0) {
        return error{errc::denied,
                     "the oci backend needs root to set up mounts, uids and cgroups: run sandboxd as "
                     "root (SANDBOXD_USER then drops what serves HTTP to another account)"};
    }
    if (auto made = make_state_directories(options); !made) {
        return made.error();
    }
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        return os_error("a socket pair", errno);
    }
    core::unique_fd ours(ends[0]);
    core::unique_fd theirs(ends[1]);
    for (const int end : ends) {
        ::setsockopt(end, SOL_SOCKET, SO_SNDBUFFORCE, &socket_buffer, sizeof socket_buffer);
    }
    std::fflush(nullptr);
    const pid_t pid = ::fork();
    if (pid < 0) {
        return os_error("fork", errno);
    }
    if (pid == 0) {
        ours.reset();
        const int socket = theirs.release();
        keep_only(socket, options.lock);
        ignore_stop_signals();
        ::prctl(PR_SET_NAME, "sandboxd-launch");
        ::prctl(PR_SET_CHILD_SUBREAPER, 1);
        serve(options, socket);
        ::_exit(0);
    }
    ::fcntl(ours.get(), F_SETFL, O_NONBLOCK);
    return ours;
}

} // namespace sandboxd::launcher
