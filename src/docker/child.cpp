#include "docker/child.hpp"

#include "core/deadline.hpp"
#include "docker/error.hpp"

#include <boost/asio/posix/stream_descriptor.hpp>

#include <array>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace sandboxd::docker {

namespace asio = boost::asio;

namespace {

constexpr std::size_t longest_complaint = 4096;
constexpr int lifeline_of_child = STDERR_FILENO + 1;

/// Attributes and file actions of one posix_spawn, freed with it.
class spawn_plan {
public:
    explicit spawn_plan(bool own_group) {
        ::posix_spawn_file_actions_init(&actions);
        ::posix_spawnattr_init(&attributes);
        sigset_t none;
        sigset_t usual;
        ::sigemptyset(&none);
        ::sigemptyset(&usual);
        ::sigaddset(&usual, SIGPIPE);
        ::sigaddset(&usual, SIGTERM);
        ::sigaddset(&usual, SIGINT);
        ::posix_spawnattr_setsigmask(&attributes, &none);
        ::posix_spawnattr_setsigdefault(&attributes, &usual);
        ::posix_spawnattr_setflags(&attributes,
                                   static_cast<short>(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                                      (own_group ? POSIX_SPAWN_SETPGROUP : 0)));
    }
    ~spawn_plan() {
        ::posix_spawn_file_actions_destroy(&actions);
        ::posix_spawnattr_destroy(&attributes);
    }
    spawn_plan(const spawn_plan&) = delete;
    spawn_plan& operator=(const spawn_plan&) = delete;

    posix_spawn_file_actions_t actions{};
    posix_spawnattr_t attributes{};
};

task<bool> wait_readable(int fd) {
    asio::posix::stream_descriptor watched(co_await asio::this_coro::executor, fd);
    const auto [failed] = co_await watched.async_wait(asio::posix::stream_descriptor::wait_read,
                                                      asio::as_tuple(asio::use_awaitable));
    co_return !failed;
}

} // namespace

child::child(int pid, core::unique_fd pidfd, core::unique_fd complaints, bool own_group)
    : pid_(pid), pidfd_(std::move(pidfd)), complaints_(std::move(complaints)), own_group_(own_group) {}

child::~child() {
    if (!reaped_) {
        signal(SIGKILL);
        siginfo_t info{};
        while (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED) != 0 && errno == EINTR) {
        }
    }
}

void child::signal(int number) const noexcept {
    // Not reaped yet, so the number is still this process.
    ::kill(own_group_ ? -pid_ : pid_, number);
}

std::optional<int> child::reap() noexcept {
    siginfo_t info{};
    if (reaped_ || ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG) != 0 ||
        info.si_pid == 0) {
        return std::nullopt;
    }
    reaped_ = true;
    return info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
}

task<std::optional<int>> child::wait(std::chrono::milliseconds limit) {
    const int watched = ::fcntl(pidfd_.get(), F_DUPFD_CLOEXEC, 0);
    if (watched >= 0) {
        co_await core::with_timeout(wait_readable(watched), limit);
    }
    co_return reap();
}

std::string child::complaint() {
    std::array<char, 1024> part{};
    while (said_.size() < longest_complaint) {
        const ssize_t got = ::read(complaints_.get(), part.data(), part.size());
        if (got <= 0) {
            break;
        }
        said_.append(part.data(), static_cast<std::size_t>(got));
    }
    return words_of(said_);
}

struct child::retirement {
    retirement(const asio::any_io_executor& executor, int fd, std::shared_ptr<child> one)
        : process(std::move(one)), watched(executor, fd), timer(executor) {}
    std::shared_ptr<child> process;
    asio::posix::stream_descriptor watched;
    asio::steady_timer timer;
};

void child::retire(const asio::any_io_executor& executor, std::shared_ptr<child> process,
                   std::chrono::milliseconds grace) {
    if (process == nullptr || process->reaped_) {
        return;
    }
    process->signal(SIGTERM);
    const int fd = ::fcntl(process->pidfd_.get(), F_DUPFD_CLOEXEC, 0);
    if (fd < 0) {
        return; // the destructor kills and waits
    }
    auto state = std::make_shared<retirement>(executor, fd, std::move(process));
    state->timer.expires_after(grace);
    state->timer.async_wait([state](boost::system::error_code cancelled) {
        if (!cancelled) {
            state->process->signal(SIGKILL);
        }
    });
    state->watched.async_wait(asio::posix::stream_descriptor::wait_read, [state](boost::system::error_code) {
        state->timer.cancel();
        if (state->process->own_group_) {
            state->process->signal(SIGKILL); // what it has left in its group
        }
        (void)state->process->reap();
    });
}

result<started_program> start_program(const std::vector<std::string>& argv, bool own_group) {
    std::array<int, 2> sockets{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()) != 0) {
        return os_error("cannot make a socket pair", errno);
    }
    core::unique_fd ours(sockets[0]);
    const core::unique_fd theirs(sockets[1]);
    std::array<int, 2> pipes{};
    if (::pipe2(pipes.data(), O_CLOEXEC) != 0) {
        return os_error("cannot make a pipe", errno);
    }
    core::unique_fd complaints(pipes[0]);
    const core::unique_fd errors(pipes[1]);
    (void)::fcntl(complaints.get(), F_SETFL, O_NONBLOCK);
    core::unique_fd lifeline;
    core::unique_fd its_end;
    if (own_group) {
        if (::pipe2(pipes.data(), O_CLOEXEC) != 0) {
            return os_error("cannot make a pipe", errno);
        }
        its_end = core::unique_fd(pipes[0]);
        lifeline = core::unique_fd(pipes[1]);
    }

    spawn_plan plan(own_group);
    ::posix_spawn_file_actions_adddup2(&plan.actions, theirs.get(), STDIN_FILENO);
    ::posix_spawn_file_actions_adddup2(&plan.actions, theirs.get(), STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&plan.actions, errors.get(), STDERR_FILENO);
    if (own_group) {
        ::posix_spawn_file_actions_adddup2(&plan.actions, its_end.get(), lifeline_of_child);
    }
    std::vector<char*> arguments;
    for (const auto& one : argv) {
        arguments.push_back(const_cast<char*>(one.c_str()));
    }
    arguments.push_back(nullptr);
    pid_t pid = 0;
    const int failed =
        ::posix_spawnp(&pid, arguments.front(), &plan.actions, &plan.attributes, arguments.data(), environ);
    if (failed != 0) {
        return os_error("cannot start " + argv.front(), failed);
    }
    core::unique_fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    started_program made;
    made.process = std::make_shared<child>(pid, std::move(pidfd), std::move(complaints), own_group);
    made.socket = std::move(ours);
    made.lifeline = std::move(lifeline);
    return made;
}

} // namespace sandboxd::docker
