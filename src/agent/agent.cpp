#include "agent/agent.hpp"

#include "agent/bridge.hpp"
#include "agent/buffers.hpp"
#include "agent/passwd.hpp"
#include "agent/system.hpp"

#include <fcntl.h>
#include <malloc.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdlib>

namespace sandboxd::agent {

namespace {

/// From TERM to the end of everything.
constexpr instant leave_grace = 1'500 * millisecond;
constexpr instant leave_pause = 20 * millisecond;
constexpr instant tidy_pause = 1 * second;
/// A supervisor that nobody has used for so long ends: it costs memory.
constexpr instant idle_workers = 5 * second;
constexpr instant idle_helpers = 10 * second;

std::uint64_t token_of(std::uint32_t kind, std::uint32_t id) {
    return std::uint64_t{kind} << 32 | id;
}

/// Every signal as it was before anybody changed it; the loop reads the few it wants.
void reset_signals() {
    for (int number = 1; number < NSIG; ++number) {
        signal(number, SIG_DFL);
    }
    signal(SIGPIPE, SIG_IGN);
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, nullptr);
}

/// True when the agent is spared by the kernel's out-of-memory choice, so that commands have to be set back.
bool lower_oom_score() {
    const descriptor file(open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC));
    if (!file.valid()) {
        return false;
    }
    [[maybe_unused]] const auto count = write(file.get(), "-900", 4); // not everywhere allowed
    char text[16] = {};
    return pread(file.get(), text, sizeof text - 1, 0) > 0 && std::atoi(text) < 0;
}

/// HOME as a login would set it; true when the environment had none.
bool guess_home() {
    if (getenv("HOME") != nullptr) {
        return false;
    }
    const auto passwd = read_small_file("/etc/passwd");
    const auto entry = find_user(passwd, geteuid());
    setenv("HOME", entry && !entry->home.empty() ? std::string(entry->home).c_str() : "/", 1);
    return true;
}

} // namespace

agent::agent(const agent_options& options) : options_(options) {}

agent::~agent() = default;

bool agent::watch(int fd, source kind, std::uint32_t id, std::uint32_t events) {
    epoll_event event{};
    event.events = events;
    event.data.u64 = token_of(static_cast<std::uint32_t>(kind), id);
    return epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

void agent::change_watch(int fd, source kind, std::uint32_t id, std::uint32_t events) {
    epoll_event event{};
    event.events = events;
    event.data.u64 = token_of(static_cast<std::uint32_t>(kind), id);
    epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
}

void agent::unwatch(int fd) {
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

bool agent::prepare() {
    mallopt(M_MMAP_THRESHOLD, 128 * 1024);
    mallopt(M_TRIM_THRESHOLD, 64 * 1024);
    mallopt(M_TOP_PAD, 16 * 1024);
    reset_signals();
    null_.reset(open("/dev/null", O_RDWR | O_CLOEXEC));
    if (!null_.valid()) {
        null_ = std::move(make_pipe().read); // always at its end
    }
    reset_oom_score_ = lower_oom_score();
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); // process 1 is that anyway
    own_home_ = guess_home();
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        open_files_ = limit.rlim_cur;
        limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 65'536);
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    random_bytes(boot_id_);
    epoll_.reset(epoll_create1(EPOLL_CLOEXEC));
    sigset_t wanted;
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGCHLD);
    sigaddset(&wanted, SIGTERM);
    signals_.reset(signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!epoll_.valid() || !watch(signals_.get(), source::signals, 0, EPOLLIN)) {
        return false;
    }
    bridge_ = options_.bridge_name != nullptr ? listen_for_bridge(options_.bridge_name)
                                              : descriptor(fcntl(options_.bridge_fd, F_DUPFD_CLOEXEC, 3));
    if (bridge_.valid()) {
        set_nonblocking(bridge_.get());
        watch(bridge_.get(), source::bridge, 0, EPOLLIN);
    }
    switch (options_.how) {
    case agent_options::transport::relayed:
        return bridge_.valid();
    case agent_options::transport::listen:
        listener_.reset(fcntl(options_.listen_fd, F_DUPFD_CLOEXEC, 3));
        close(options_.listen_fd);
        if (!listener_.valid()) {
            return false;
        }
        set_nonblocking(listener_.get());
        return watch(listener_.get(), source::listener, 0, EPOLLIN);
    case agent_options::transport::standard_streams: {
        descriptor in(fcntl(0, F_DUPFD_CLOEXEC, 3));
        descriptor out(fcntl(1, F_DUPFD_CLOEXEC, 3));
        if (!in.valid() || !out.valid()) {
            return false;
        }
        dup2(null_.get(), 0);
        dup2(null_.get(), 1);
        set_nonblocking(in.get());
        set_nonblocking(out.get());
        const auto id = next_connection_++;
        auto& one = connections_[id] = std::make_unique<connection>(id, std::move(in), std::move(out));
        return watch(one->in.get(), source::connection, id, EPOLLIN);
    }
    case agent_options::transport::dial:
        dial();
        return true;
    }
    return false;
}

int agent::run() {
    now_ = now();
    if (!prepare()) {
        return 1;
    }
    if (options_.entrypoint != nullptr) {
        run_entrypoint();
    }
    while (!left_) {
        epoll_event events[64];
        const int count = epoll_wait(epoll_.get(), events, 64, deadlines_.wait_ms(now_));
        now_ = now();
        for (int i = 0; i < count; ++i) {
            handle(events[i].data.u64);
        }
        deadline due;
        while (deadlines_.pop(now_, due)) {
            on_deadline(due);
        }
        flush();
        now_ = now();
    }
    flush();
    return 0;
}

void agent::handle(std::uint64_t token) {
    const auto id = static_cast<std::uint32_t>(token);
    switch (static_cast<source>(token >> 32)) {
    case source::signals:
        on_signals();
        break;
    case source::listener:
        accept_connection();
        break;
    case source::bridge:
        accept_bridge();
        break;
    case source::connection:
        on_connection(id);
        break;
    case source::worker:
        on_worker(id);
        break;
    case source::input:
        if (auto* const target = find(id)) {
            write_input(*target);
        }
        break;
    case source::output:
        read_pipe(id, 0);
        break;
    case source::error:
        read_pipe(id, 1);
        break;
    case source::drain:
        drain(id);
        break;
    case source::helper:
        on_helper(id);
        break;
    }
}

void agent::on_signals() {
    signalfd_siginfo info{};
    while (read(signals_.get(), &info, sizeof info) == sizeof info) {
        // As process 1 it obeys only who is outside (such a sender has no pid here): `kill -TERM -1` is a
        // command's way to end its own kind, not the sandbox.
        if (info.ssi_signo == SIGTERM && (getpid() != 1 || info.ssi_pid == 0)) {
            begin_leaving();
        }
    }
    reap();
}

bool agent::stale(const deadline& entry) const {
    const auto found = streams_.find(entry.id);
    switch (entry.kind) {
    case deadline_kind::timeout:
        return found == streams_.end() || found->second->timeout_at != entry.at;
    case deadline_kind::drained:
        return found == streams_.end() || found->second->drained_at != entry.at;
    case deadline_kind::backstop:
        return found == streams_.end() || found->second->backstop_at != entry.at;
    default:
        return false;
    }
}

void agent::on_deadline(const deadline& due) {
    if (stale(due)) {
        return;
    }
    auto* const target = find(due.id);
    const auto peer = connections_.find(due.id);
    switch (due.kind) {
    case deadline_kind::timeout:
        stop(*target, protocol::end_cause::timed_out);
        break;
    case deadline_kind::drained:
        advance(*target);
        break;
    case deadline_kind::backstop:
        take_over(*target);
        break;
    case deadline_kind::hello:
        if (peer != connections_.end() && peer->second->hello_by == due.at && !peer->second->welcomed) {
            drop_connection(due.id);
        }
        break;
    case deadline_kind::redial:
        dial();
        break;
    case deadline_kind::bridge:
        watch(bridge_.get(), source::bridge, 0, EPOLLIN);
        break;
    case deadline_kind::stalled:
        if (peer != connections_.end() && peer->second->stalled_at == due.at) {
            check_stalled(*peer->second);
        }
        break;
    case deadline_kind::tidy:
        tidy();
        break;
    case deadline_kind::orphans:
        orphan_round();
        break;
    case deadline_kind::leave:
        leave_round();
        break;
    }
}

/// Once a second while there is something to give back.
void agent::tidy() {
    tidy_planned_ = false;
    const bool quiet = now_ - last_start_ >= idle_workers;
    retire_workers(quiet ? now_ : now_ - tidy_pause, quiet ? 0 : 1);
    retire_helpers(now_ - idle_helpers);
    if (deadlines_.size() > 64 + 4 * streams_.size()) {
        deadlines_.compact([this](const deadline& entry) { return stale(entry); });
    }
    if (quiet && helpers_.empty()) {
        outbox_.trim();
        malloc_trim(0);
        release_unused();
        return;
    }
    plan_tidy();
}

void agent::plan_tidy() {
    if (!tidy_planned_) {
        tidy_planned_ = true;
        deadlines_.add({now_ + tidy_pause, deadline_kind::tidy, 0});
    }
}

void agent::begin_leaving() {
    if (leaving_) {
        return;
    }
    leaving_ = true;
    leave_by_ = now_ + leave_grace;
    for (auto& [number, target] : streams_) {
        if (target->file) {
            abandon_operation(*target);
        } else if (target->running && target->stop_cause == protocol::end_cause{}) {
            target->stop_cause = protocol::end_cause::stopped;
        }
    }
    leave_round();
}

/// TERM to everything, KILL at the end of the grace; gone as soon as nothing is left. The supervisors stay to
/// report.
void agent::leave_round() {
    const bool killing = now_ >= leave_by_;
    const auto self = getpid();
    const auto supervisors = worker_pids();
    const auto living = leave_signaller_.round(self, killing ? SIGKILL : SIGTERM,
                                               {.pids = supervisors, .with_descendants = false});
    const bool over =
        living == 0 && quick_.running + searches_.running == 0 &&
        std::none_of(workers_.begin(), workers_.end(), [](const auto& one) { return one.second.busy; });
    if (!over && now_ < leave_by_ + leave_grace / 5) {
        deadlines_.add({now_ + leave_pause, deadline_kind::leave, 0});
        return;
    }
    for (const auto pid : supervisors) {
        kill(pid, SIGKILL);
    }
    if (self == 1) {
        kill(-1, SIGKILL);
    }
    left_ = true;
}

} // namespace sandboxd::agent
