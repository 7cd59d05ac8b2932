#include "launcher/blocking/child.hpp"

#include "launcher/text.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace sandboxd::launcher::blocking {

namespace {

constexpr int first_passed = 3;
constexpr int not_prepared = 125;
constexpr std::size_t max_line = 4096;
constexpr auto between_looks = std::chrono::milliseconds(250);

int milliseconds_until(deadline until) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now()).count();
    return static_cast<int>(std::clamp<long>(left, 0, 24L * 3600 * 1000));
}

std::vector<char*> pointers(std::vector<std::string>& from) {
    std::vector<char*> made;
    for (auto& one : from) {
        made.push_back(one.data());
    }
    made.push_back(nullptr);
    return made;
}

/// After fork, before exec.
void default_signals() {
    for (int number = 1; number < NSIG; ++number) {
        ::signal(number, SIG_DFL);
    }
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

/// Puts the descriptors in their places: first out of the way of each other, then where they belong.
bool place(const child_program& program) {
    const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    const int output = program.output >= 0 ? program.output : null;
    const int above = first_passed + static_cast<int>(program.passed.size());
    std::vector<int> moved{::fcntl(null, F_DUPFD_CLOEXEC, above), ::fcntl(output, F_DUPFD_CLOEXEC, above)};
    for (const int fd : program.passed) {
        moved.push_back(::fcntl(fd, F_DUPFD_CLOEXEC, above));
    }
    bool ok = ::dup2(moved[0], 0) == 0 && ::dup2(moved[1], 1) == 1 && ::dup2(moved[1], 2) == 2;
    for (std::size_t i = 2; i < moved.size(); ++i) {
        const int place = first_passed + static_cast<int>(i) - 2;
        ok = ok && ::dup2(moved[i], place) == place;
    }
    ok = ok && ::syscall(SYS_close_range, static_cast<unsigned>(above), ~0U, CLOSE_RANGE_CLOEXEC) == 0;
    for (const int fd : program.kept) {
        ok = ok && fd >= above && ::fcntl(fd, F_SETFD, 0) == 0;
    }
    return ok;
}

[[noreturn]] void become(const child_program& program, char** argv, char** envp, pid_t parent) {
    default_signals();
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (program.prepare && !program.prepare()) {
        ::_exit(not_prepared);
    }
    ::prctl(PR_SET_PDEATHSIG, SIGKILL); // again: a change of ids has undone it
    if (::getppid() != parent || !place(program) ||
        (!program.directory.empty() && ::chdir(program.directory.c_str()) != 0)) {
        ::_exit(126);
    }
    if (program.file.empty()) {
        ::execvpe(argv[0], argv, envp);
    } else {
        ::execve(program.file.c_str(), argv, envp);
    }
    ::_exit(errno == ENOENT ? 127 : 126);
}

/// Hands over the whole lines of `text`, and its rest when it is too long or nothing follows.
void give_lines(std::string& text, bool last, const std::function<void(std::string_view)>& line) {
    while (true) {
        const auto end = text.find_first_of("\r\n");
        if (end != std::string::npos) {
            if (end > 0) {
                line(std::string_view(text).substr(0, std::min(end, max_line)));
            }
            text.erase(0, end + 1);
            continue;
        }
        if (!text.empty() && (last || text.size() > max_line)) {
            line(std::string_view(text).substr(0, max_line));
            text.clear();
        }
        return;
    }
}

/// Asks a program's watch every now and then, however much it prints.
class watcher {
public:
    explicit watcher(const std::function<bool()>& watch) : watch_(watch) {}

    /// False at the deadline, and when the watch says so.
    bool wait_readable(int fd, deadline until) {
        while (watch_) {
            const auto now = std::chrono::steady_clock::now();
            if (now >= next_) {
                next_ = now + between_looks;
                if (!watch_()) {
                    return false;
                }
            }
            if (blocking::wait_readable(fd, std::min(until, next_))) {
                return true;
            }
            if (until <= next_) {
                return false;
            }
        }
        return blocking::wait_readable(fd, until);
    }

private:
    const std::function<bool()>& watch_;
    deadline next_ = deadline::min();
};

/// False at the deadline, and when the watch says so.
bool read_lines(int from, deadline until, const std::function<void(std::string_view)>& line, watcher& watch) {
    std::string text;
    char buffer[4096];
    while (true) {
        if (!watch.wait_readable(from, until)) {
            return false;
        }
        const auto count = ::read(from, buffer, sizeof buffer);
        if (count <= 0) {
            give_lines(text, true, line);
            return true;
        }
        text.append(buffer, static_cast<std::size_t>(count));
        give_lines(text, false, line);
    }
}

} // namespace

bool wait_readable(int fd, deadline until) {
    while (true) {
        pollfd one{fd, POLLIN, 0};
        const int ready = ::poll(&one, 1, milliseconds_until(until));
        if (ready > 0) {
            return true;
        }
        if (ready == 0 || errno != EINTR) {
            return false;
        }
    }
}

std::optional<std::string> find_program(const std::string& name) {
    const auto may_run = [](const std::string& file) { return ::access(file.c_str(), X_OK) == 0; };
    if (name.find('/') != std::string::npos) {
        return may_run(name) ? std::optional(name) : std::nullopt;
    }
    const char* path = std::getenv("PATH");
    for (const auto directory : split(path != nullptr ? path : usual_path, ':')) {
        auto file = std::string(directory) + "/" + name;
        if (may_run(file)) {
            return file;
        }
    }
    return std::nullopt;
}

result<child_process> child_process::start(const child_program& program) {
    auto words = program.argv;
    std::vector<std::string> variables;
    for (const auto& [name, value] : program.env) {
        variables.push_back(name + "=" + value);
    }
    auto argv = pointers(words);
    auto envp = pointers(variables);
    const pid_t parent = ::getpid();
    child_process child;
    child.name_ = program.argv[0];
    child.prepares_ = static_cast<bool>(program.prepare);
    child.pid_ = ::fork();
    if (child.pid_ < 0) {
        return os_error("fork", errno);
    }
    if (child.pid_ == 0) {
        become(program, argv.data(), envp.data(), parent);
    }
    child.pidfd_.reset(static_cast<int>(::syscall(SYS_pidfd_open, child.pid_, 0)));
    if (!child.pidfd_) {
        return os_error("pidfd_open", errno); // and it is killed
    }
    return child;
}

child_process::child_process(child_process&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      pidfd_(std::move(other.pidfd_)),
      name_(std::move(other.name_)),
      prepares_(other.prepares_) {}

child_process::~child_process() {
    if (pid_ > 0) {
        static_cast<void>(finish(false));
    }
}

result<child_end> child_process::wait(deadline until) {
    return finish(wait_readable(pidfd_.get(), until));
}

result<child_end> child_process::finish(bool in_time) {
    child_end end;
    if (!in_time) {
        end.timed_out = true;
        ::kill(pid_, SIGKILL);
    }
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    end.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (end.exit_code == 127 && !end.timed_out) {
        return error{errc::start_failed, "the program '" + name_ + "' is not installed"};
    }
    if (end.exit_code == not_prepared && prepares_ && !end.timed_out) {
        return error{errc::start_failed, "the place that '" + name_ + "' runs in can't be prepared"};
    }
    return end;
}

result<child_end> run_child(const child_program& program, deadline until) {
    auto child = child_process::start(program);
    return child ? child->wait(until) : result<child_end>(child.error());
}

result<child_end> run_child_lines(child_program program, deadline until,
                                  const std::function<void(std::string_view)>& line) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) {
        return os_error("pipe", errno);
    }
    const core::unique_fd reading(ends[0]);
    core::unique_fd writing(ends[1]);
    program.output = writing.get();
    auto child = child_process::start(program);
    if (!child) {
        return child.error();
    }
    writing.reset();
    watcher watch(program.watch);
    return child->finish(read_lines(reading.get(), until, line, watch) &&
                         watch.wait_readable(child->pidfd(), until));
}

} // namespace sandboxd::launcher::blocking
