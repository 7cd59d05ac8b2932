#include "agent/supervisor.hpp"

#include "agent/buffers.hpp"
#include "agent/deadlines.hpp"
#include "agent/launch.hpp"
#include "agent/orders.hpp"
#include "agent/process_tree.hpp"
#include "agent/system.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>

namespace sandboxd::agent {

namespace {

/// A command that ends within this time is reported once instead of twice: that saves a quick command two
/// wake-ups.
constexpr instant report_delay = 5 * millisecond;

void on_child(int) {}

class supervisor {
public:
    explicit supervisor(const supervisor_setup& setup) : setup_(setup) {}
    [[noreturn]] void run();

private:
    [[nodiscard]] bool wait();
    [[nodiscard]] bool receive();
    void start(const order& head, const descriptor (&files)[most_descriptors], std::span<char> payload);
    void map_and_start(const order& head, const descriptor (&files)[most_descriptors]);
    void fail(const launch_result& result);
    void announce();
    void release();
    void begin_stop(std::uint32_t grace_ms);
    void reap();
    void stop_round();
    void send(const report& head, std::string_view text = {}) const {
        send_report(setup_.socket, head, text);
    }

    const supervisor_setup& setup_;
    launch launch_;
    std::span<char> mapped_; ///< a long payload, while it is needed
    tree_signaller signaller_;
    std::uint64_t commands_ = 0; ///< so far
    bool strays_ = false;        ///< without subreapers: some may be alive that are no children here
    pid_t command_ = 0;          ///< 0: none, or it has ended
    bool busy_ = false;          ///< there may be descendants
    instant announce_at_ = 0;    ///< when `started` is due; 0: it was sent
    bool stopping_ = false;
    instant kill_at_ = 0;
    instant next_round_ = 0;
    instant pause_ = 0;
};

/// Of the order to run: stays until the command is known to run, since its child needs it; other orders have
/// none.
alignas(4096) char inline_text[inline_payload + 4096];

void supervisor::start(const order& head, const descriptor (&files)[most_descriptors],
                       std::span<char> payload) {
    launch_setup setup;
    std::size_t next = (head.flags & payload_file) != 0 ? 1 : 0;
    const auto take = [&](std::uint32_t flag, int otherwise) {
        return (head.flags & flag) != 0 ? files[next++].get() : otherwise;
    };
    setup.in = take(with_in, -1); // nothing can be read there
    setup.out = take(with_out, (head.flags & terminal) != 0 ? setup.in : setup_.null);
    setup.err = take(with_err, setup.out);
    setup.terminal = (head.flags & terminal) != 0;
    setup.own_home = setup_.own_home;
    setup.wait = !setup_.subreaper; // and no other news of the child's memory there
    setup.base = setup_.base;
    std::string mark;
    if (!setup_.subreaper) {
        mark = "SANDBOXD_COMMAND=" + std::to_string(getpid()) + "." + std::to_string(now()) + "." +
               std::to_string(++commands_);
        setup.mark = mark.data();
    }
    const auto result = launch_.begin(payload, setup);
    if (result.pid < 0) {
        fail(result);
        return;
    }
    if (!setup_.subreaper) {
        signaller_ = tree_signaller({.keeper = getppid(), .session = result.pid, .mark = std::move(mark)});
    }
    command_ = result.pid;
    busy_ = true;
    announce_at_ = now() + report_delay;
}

/// The payload is in a file, the first of the descriptors.
void supervisor::map_and_start(const order& head, const descriptor (&files)[most_descriptors]) {
    const auto size = std::size_t{head.size} + 1;
    void* const text = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, files[0].get(), 0);
    if (text == MAP_FAILED) {
        fail({.failure = protocol::failure_kind::os,
              .os_errno = errno,
              .text = "the command is too long for the memory there is"});
        return;
    }
    mapped_ = {static_cast<char*>(text), size};
    start(head, files, mapped_.first(head.size));
}

/// It never ran, and nothing is left of it.
void supervisor::fail(const launch_result& result) {
    send({.kind = report_kind::failed,
          .failure = result.failure,
          .exit_code = result.exit_code,
          .os_errno = result.os_errno},
         std::string_view(result.text).substr(0, longest_text));
    release();
}

/// Gives back what the start of a command needed.
void supervisor::release() {
    launch_.clear();
    if (!mapped_.empty()) {
        munmap(mapped_.data(), mapped_.size());
        mapped_ = {};
    }
}

/// Tells that the command runs, if it does.
void supervisor::announce() {
    if (!launch_.settled()) {
        announce_at_ = now() + report_delay;
        return;
    }
    announce_at_ = 0;
    if (launch_.failure().failure == protocol::failure_kind::none) { // else its end comes
        send({.kind = report_kind::started, .pid = command_});
        release();
        give_back(inline_text); // such a command may run for days
    }
}

/// One order. False at the end of the socket.
bool supervisor::receive() {
    order head;
    descriptor files[most_descriptors];
    const std::span text(inline_text, busy_ ? 0 : inline_payload);
    switch (receive_order(setup_.socket, head, files, text)) {
    case received::nothing:
        return true;
    case received::end:
        return false;
    case received::order:
        break;
    }
    switch (head.kind) {
    case order_kind::run:
        if ((head.flags & payload_file) == 0) {
            start(head, files, {inline_text, head.size});
        } else {
            map_and_start(head, files);
        }
        return true;
    case order_kind::stop:
        begin_stop(head.value);
        return true;
    case order_kind::signal:
        // A child that has not got so far as to have its group is signalled alone.
        if (command_ != 0 && kill(-command_, static_cast<int>(head.value)) != 0) {
            kill(command_, static_cast<int>(head.value));
        }
        return true;
    }
    return true;
}

void supervisor::begin_stop(std::uint32_t grace_ms) {
    if (!busy_ || stopping_) {
        return;
    }
    stopping_ = true;
    strays_ = !setup_.subreaper;
    next_round_ = now();
    kill_at_ = next_round_ + grace_ms * millisecond;
    pause_ = 5 * millisecond;
}

/// TERM to each process once as it is found, then KILL to all, again and again until nothing is left.
void supervisor::stop_round() {
    const auto at = now();
    const bool killing = at >= kill_at_;
    const auto living = signaller_.round(getpid(), killing ? SIGKILL : SIGTERM);
    strays_ = !setup_.subreaper && living > 0;
    pause_ = killing ? (living > 0 ? millisecond : 5 * millisecond) : std::min(pause_ * 2, 100 * millisecond);
    next_round_ = killing ? at + pause_ : std::min(at + pause_, kill_at_);
}

void supervisor::reap() {
    int status = 0;
    pid_t pid = 0;
    report ended;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid == command_) {
            ended = {.kind = report_kind::exited, .pid = pid, .status = status, .ended_at = now()};
            command_ = 0;
            announce_at_ = 0;
        }
    }
    const bool none = pid < 0 && errno == ECHILD && !strays_;
    if (none) {
        busy_ = false;
        stopping_ = false;
        strays_ = false;
        signaller_ = {};
    }
    if (ended.pid != 0) {
        const auto failure = launch_.failure();
        if (failure.failure != protocol::failure_kind::none) {
            fail(failure);
            return;
        }
        ended.idle = none ? 1 : 0;
        send(ended);
        release();
    } else if (none) {
        send({.kind = report_kind::idle});
    }
}

/// Sleeps until an order (then true), the end of a child or the next thing to do.
bool supervisor::wait() {
    instant until = -1;
    const auto sooner = [&](instant at) { until = until < 0 ? at : std::min(until, at); };
    if (announce_at_ != 0) {
        sooner(announce_at_);
    }
    if (stopping_) {
        sooner(next_round_);
    }
    timespec limit{};
    if (until >= 0) {
        const auto left = std::max<instant>(until - now(), 0);
        limit = {.tv_sec = left / second, .tv_nsec = left % second};
    }
    sigset_t none;
    sigfillset(&none);
    sigdelset(&none, SIGCHLD);
    pollfd entry{setup_.socket, POLLIN, 0};
    return ppoll(&entry, 1, until >= 0 ? &limit : nullptr, &none) > 0;
}

void supervisor::run() {
    for (;;) {
        if (wait() && !receive()) {
            break;
        }
        if (busy_) {
            reap();
        }
        if (announce_at_ != 0 && now() >= announce_at_) {
            announce();
        }
        if (stopping_ && now() >= next_round_) {
            stop_round();
        }
    }
    // The agent is gone: nothing may outlive it.
    while (waitpid(-1, nullptr, WNOHANG) >= 0) {
        signaller_.round(getpid(), SIGKILL);
        usleep(1000);
    }
    _exit(0);
}

} // namespace

void supervise(const supervisor_setup& setup) {
    int kept[] = {setup.socket, setup.null};
    keep_only(kept, setup.null);
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, nullptr);
    struct sigaction action{};
    action.sa_handler = on_child;
    sigaction(SIGCHLD, &action, nullptr);
    signal(SIGPIPE, SIG_DFL); // as it is for commands: an ignored one would stay so
    supervisor_setup own = setup;
    own.subreaper = prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0;
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    setsid();
    umask(022);
    if (setup.open_files != 0) {
        rlimit limit{};
        getrlimit(RLIMIT_NOFILE, &limit);
        limit.rlim_cur = setup.open_files;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    if (setup.reset_oom_score) {
        const descriptor file(open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
        [[maybe_unused]] const auto count = write(file.get(), "0", 1);
    }
    own.socket = kept[0];
    own.null = kept[1];
    supervisor(own).run();
}

} // namespace sandboxd::agent
