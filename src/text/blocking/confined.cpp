#include "text/blocking/confined.hpp"

#include "text/blocking/walls.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace sandboxd::text::blocking {

namespace {

using clock = std::chrono::steady_clock;

constexpr std::size_t complaints_kept = 4096;
constexpr int first_free = 10; ///< above what the child makes its own

/// Out of the way of the child's standard streams.
core::unique_fd moved(core::unique_fd fd) {
    return core::unique_fd(::fcntl(fd.get(), F_DUPFD_CLOEXEC, first_free));
}

struct pipe_ends {
    core::unique_fd read;
    core::unique_fd write;
};

std::optional<pipe_ends> make_pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
        return std::nullopt;
    }
    pipe_ends out{core::unique_fd(ends[0]), moved(core::unique_fd(ends[1]))};
    return out.write ? std::optional(std::move(out)) : std::nullopt;
}

/// The input as a file in memory that nobody can change any more.
core::unique_fd file_of(std::string_view bytes) {
    core::unique_fd file(::memfd_create("input", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    while (file && !bytes.empty()) {
        const ssize_t put = ::write(file.get(), bytes.data(), bytes.size());
        if (put < 0 && errno != EINTR) {
            return {};
        }
        bytes.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(put, 0)));
    }
    if (!file || ::lseek(file.get(), 0, SEEK_SET) != 0 ||
        ::fcntl(file.get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) != 0) {
        return {};
    }
    return moved(std::move(file));
}

int milliseconds_to(clock::time_point deadline) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - clock::now());
    return static_cast<int>(std::max<std::int64_t>(left.count(), 0));
}

/// Killed and reaped at the latest when this goes.
class child {
public:
    explicit child(pid_t pid) : pid_(pid) {}
    ~child() { (void)end(); }
    child(const child&) = delete;
    child& operator=(const child&) = delete;

    void kill() const noexcept {
        if (pid_ > 0) {
            ::kill(pid_, SIGKILL); // not reaped yet: the number is still this process
        }
    }

    /// Waits for its end and kills it at the deadline. Its code, unless a signal ended it.
    std::optional<int> wait(clock::time_point deadline, bool& timed_out) noexcept {
        const core::unique_fd ended(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
        pollfd watched{ended.get(), POLLIN, 0};
        for (;;) {
            const auto left = milliseconds_to(deadline);
            const int ready = left > 0 && ended ? ::poll(&watched, 1, left) : 0;
            if (ready == 0) {
                timed_out = true;
                kill();
            }
            if (ready >= 0 || errno != EINTR) {
                return reap();
            }
        }
    }

    std::optional<int> reap() noexcept {
        int status = 0;
        while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
        }
        pid_ = -1;
        return WIFEXITED(status) ? std::optional(WEXITSTATUS(status)) : std::nullopt;
    }

private:
    std::optional<int> end() noexcept {
        if (pid_ <= 0) {
            return std::nullopt;
        }
        kill();
        return reap();
    }

    pid_t pid_;
};

/// Reads what is there; false at the end.
bool read_some(int from, std::string& into, std::size_t keep) {
    std::array<char, 64 * 1024> buffer; // NOLINT: filled by read
    const ssize_t got = ::read(from, buffer.data(), buffer.size());
    if (got < 0) {
        return errno == EINTR || errno == EAGAIN;
    }
    const auto room = keep - std::min(keep, into.size());
    into.append(buffer.data(), std::min(room, static_cast<std::size_t>(got)));
    return got > 0;
}

/// Until both streams are at their end, or a limit is.
void collect(child& program, const core::unique_fd& out, const core::unique_fd& complaints,
             const allowance& most, clock::time_point deadline, confined_end& end) {
    std::array<pollfd, 2> streams{pollfd{out.get(), POLLIN, 0}, pollfd{complaints.get(), POLLIN, 0}};
    while (streams[0].fd >= 0 || streams[1].fd >= 0) {
        const int left = milliseconds_to(deadline);
        if (left == 0) {
            end.timed_out = true;
            break;
        }
        if (::poll(streams.data(), streams.size(), left) < 0 && errno != EINTR) {
            break;
        }
        if (streams[0].revents != 0 && !read_some(streams[0].fd, end.out, most.output + 1)) {
            streams[0].fd = -1;
        }
        if (streams[1].revents != 0 && !read_some(streams[1].fd, end.complaints, complaints_kept)) {
            streams[1].fd = -1;
        }
        streams[0].revents = 0;
        streams[1].revents = 0;
        if (end.out.size() > most.output) {
            end.out.resize(most.output);
            end.output_limited = true;
            break;
        }
    }
    if (end.timed_out || end.output_limited) {
        program.kill();
    }
}

} // namespace

result<confined_end> run_confined(const std::vector<std::string>& argv, std::string_view input,
                                  const allowance& most) {
    const auto file = file_of(input);
    auto out = make_pipe();
    auto complaints = make_pipe();
    auto failure = make_pipe();
    if (!file || !out || !complaints || !failure) {
        return os_error("no descriptors for a confined program", errno);
    }
    core::unique_fd rules = make_landlock_rules();
    if (rules) {
        rules = moved(std::move(rules));
    }
    std::vector<char*> arguments;
    for (const auto& one : argv) {
        arguments.push_back(const_cast<char*>(one.c_str())); // execve changes nothing
    }
    arguments.push_back(nullptr);
    const child_descriptors own{file.get(), out->write.get(), complaints->write.get(), failure->write.get(),
                                rules ? rules.get() : -1};
    const pid_t pid = ::fork();
    if (pid == 0) {
        become_confined(own, arguments.data(), most);
    }
    if (pid < 0) {
        return os_error("cannot start " + argv.front(), errno);
    }
    child program(pid);
    out->write.reset();
    complaints->write.reset();
    failure->write.reset();
    int number = 0;
    if (::read(failure->read.get(), &number, sizeof number) == sizeof number) {
        return os_error("cannot start " + argv.front(), number);
    }
    confined_end end;
    const auto deadline = clock::now() + most.time;
    collect(program, out->read, complaints->read, most, deadline, end);
    end.exit_code =
        end.timed_out || end.output_limited ? program.reap() : program.wait(deadline, end.timed_out);
    return end;
}

} // namespace sandboxd::text::blocking
