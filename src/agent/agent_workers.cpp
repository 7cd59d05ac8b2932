#include "agent/agent.hpp"

#include "agent/orders.hpp"
#include "agent/system.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <cstring>

namespace sandboxd::agent {

namespace {

constexpr instant orphan_pause = 5 * millisecond;
constexpr instant orphan_hunt = 5 * millisecond;
constexpr int orphan_rounds_before_all = 100; ///< about a second
constexpr int most_orphan_rounds = 500;

} // namespace

/// Supervisors and file helpers.
std::vector<pid_t> agent::worker_pids() const {
    std::vector<pid_t> out;
    out.reserve(workers_.size());
    for (const auto& [id, one] : workers_) {
        out.push_back(one.pid);
    }
    for (const auto& [id, one] : helpers_) {
        if (one.pid > 0) {
            out.push_back(one.pid);
        }
    }
    std::sort(out.begin(), out.end());
    return out;
}

agent::worker* agent::take_worker() {
    if (idle_.empty()) {
        return fork_worker();
    }
    const auto id = idle_.back();
    idle_.pop_back();
    auto& one = workers_.find(id)->second;
    one.busy = true;
    return &one;
}

agent::worker* agent::fork_worker() {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        return nullptr;
    }
    descriptor own(ends[0]);
    const descriptor theirs(ends[1]);
    const pid_t pid = fork();
    if (pid == 0) {
        supervise({.socket = theirs.get(),
                   .null = null_.get(),
                   .base = environ,
                   .own_home = own_home_,
                   .reset_oom_score = reset_oom_score_,
                   .open_files = open_files_});
    }
    if (pid < 0) {
        return nullptr;
    }
    const auto id = next_worker_++;
    if (!watch(own.get(), source::worker, id, EPOLLIN)) {
        return nullptr; // its end of the socket closes: it leaves
    }
    auto& one = workers_[id];
    one.id = id;
    one.pid = pid;
    one.socket = std::move(own);
    one.busy = true;
    return &one;
}

/// Hands a command over. False when that failed: the supervisor is of no use then.
bool agent::give(worker& to, const order& head, std::string_view payload, std::span<const int> files) {
    to.only_run = true;
    return send_command(to.socket.get(), head, payload, files);
}

void agent::order_worker(std::uint32_t id, order_kind kind, std::uint32_t value) {
    const auto found = workers_.find(id);
    if (found == workers_.end()) {
        return;
    }
    kill(found->second.pid, SIGCONT); // a command may have stopped it
    found->second.only_run = false;
    const order packet{.kind = kind, .value = value};
    ::send(found->second.socket.get(), &packet, sizeof packet, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void agent::on_worker(std::uint32_t id) {
    char packet[sizeof(report) + longest_text];
    for (;;) {
        const auto found = workers_.find(id);
        if (found == workers_.end()) {
            return;
        }
        const auto count = recv(found->second.socket.get(), packet, sizeof packet, MSG_DONTWAIT);
        if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
            return;
        }
        if (count < static_cast<ssize_t>(sizeof(report))) {
            // A reset says that there was an order it has not read.
            const bool unread = count < 0 && errno == ECONNRESET && found->second.only_run;
            lose_worker(id, unread);
            return;
        }
        report head;
        std::memcpy(&head, packet, sizeof head);
        on_report(found->second, head, {packet + sizeof head, static_cast<std::size_t>(count) - sizeof head});
        if (head.kind == report_kind::exited) {
            return; // most often there is nothing more
        }
    }
}

void agent::on_report(worker& from, const report& head, std::string_view text) {
    auto* const target = from.stream != 0 ? find(from.stream) : nullptr;
    if (target != nullptr && head.pid != 0 && target->pid == 0) {
        target->pid = head.pid;
        if (active_ != nullptr && target->attached) {
            protocol::frame_writer(outbox_.control(), protocol::frame_type::started, target->number)
                .u32(protocol::tag::pid, static_cast<std::uint32_t>(head.pid));
        }
    }
    const bool idle = head.kind == report_kind::idle || head.kind == report_kind::failed || head.idle != 0;
    if (idle) {
        release_worker(from);
    }
    if (target == nullptr) {
        return;
    }
    if (idle) {
        target->tree_gone = true;
        target->worker = 0;
    }
    switch (head.kind) {
    case report_kind::started:
        break;
    case report_kind::failed:
        target->never_started(head.failure, head.exit_code, head.os_errno, text);
        close_pipe(*target, 0);
        close_pipe(*target, 1);
        advance(*target);
        if (head.failure == protocol::failure_kind::no_process) {
            retire_workers(now_, 0); // they take the room that commands need
        }
        break;
    case report_kind::exited:
        target->exited(head.status, head.ended_at);
        settle(*target);
        break;
    case report_kind::idle:
        advance(*target);
        break;
    }
}

void agent::release_worker(worker& from) {
    from.stream = 0;
    from.busy = false;
    from.idle_since = now_;
    idle_.push_back(from.id);
}

/// A supervisor is gone; `unread`: it never took its order, so that nothing has run. What was below it comes
/// to the agent: if its command still ran, nobody can tell any more what belongs to whom, and all of it is
/// killed.
void agent::lose_worker(std::uint32_t id, bool unread) {
    const auto found = workers_.find(id);
    if (found == workers_.end()) {
        return;
    }
    auto& one = found->second;
    auto* const target = one.stream != 0 ? find(one.stream) : nullptr;
    const bool orphans =
        one.busy && target != nullptr && (target->running || target->stop_cause != protocol::end_cause{});
    unwatch(one.socket.get());
    if (one.pid > 0) {
        kill(one.pid, SIGKILL); // not yet reaped, so that the pid is its own
    }
    std::erase(idle_, id);
    workers_.erase(found);
    if (orphans && !orphans_planned_) {
        orphans_planned_ = true;
        orphan_rounds_ = 0;
        deadlines_.add({now_, deadline_kind::orphans, 0});
    }
    if (target != nullptr) {
        target->worker = 0;
        if (unread) {
            refuse(*target, protocol::failure_kind::no_process, 0,
                   "a command has killed the process that was to start this one; it has not run");
            return;
        }
        target->lost(now_);
        settle(*target);
    }
}

/// Ends supervisors that have been idle since before `idle_before`, all but `keep`.
void agent::retire_workers(instant idle_before, std::size_t keep) {
    while (idle_.size() > keep) {
        const auto found = workers_.find(idle_.front());
        if (found->second.idle_since > idle_before) {
            return;
        }
        unwatch(found->second.socket.get());
        idle_.erase(idle_.begin());
        workers_.erase(found); // at the end of its socket it leaves
    }
}

/// Takes every ended child: supervisors, and whatever came here as an orphan.
void agent::reap() {
    int status = 0;
    pid_t pid = 0;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        for (const auto& [id, one] : workers_) {
            if (one.pid == pid) {
                const auto lost = id;
                on_worker(lost); // what it reported before
                if (const auto found = workers_.find(lost); found != workers_.end()) {
                    found->second.pid = 0;
                    lose_worker(lost);
                }
                break;
            }
        }
        for (auto& [id, one] : helpers_) {
            if (one.pid == pid) {
                const auto lost = id;
                one.pid = 0;
                on_helper(lost); // what it answered before, then its end
                break;
            }
        }
    }
}

/// A stop that its supervisor does not get done: it may be stopped itself.
void agent::take_over(stream& target) {
    const auto found = workers_.find(target.worker);
    if (target.ended || found == workers_.end()) {
        return;
    }
    tree_signaller().round(found->second.pid, SIGKILL);
    lose_worker(target.worker);
}

/// What forks and ends as fast as it can is caught only by who does not rest, and not surely then: the last
/// resort is the kernel's kill of everything here at once, which no fork escapes, other commands included.
void agent::orphan_round() {
    orphans_planned_ = false;
    const auto self = getpid();
    const auto rest_at = now() + orphan_hunt;
    std::size_t living = 0;
    do {
        living = tree_signaller().round(self, SIGKILL, {.pids = worker_pids()});
    } while (living > 0 && now() < rest_at);
    if (living > 0 && orphan_rounds_ >= orphan_rounds_before_all && self == 1) {
        kill(-1, SIGKILL);
    }
    if ((living > 0 || orphan_rounds_ < 2) && ++orphan_rounds_ < most_orphan_rounds) {
        orphans_planned_ = true;
        deadlines_.add({now_ + orphan_pause, deadline_kind::orphans, 0});
    }
}

void agent::run_entrypoint() {
    std::string frame;
    {
        protocol::frame_writer writer(frame, protocol::frame_type::start, 1);
        for (char** one = options_.entrypoint; *one != nullptr; ++one) {
            writer.bytes(protocol::tag::argument, *one);
        }
    }
    auto* const chosen = take_worker();
    if (chosen != nullptr && !give(*chosen, {.kind = order_kind::run},
                                   std::string_view(frame).substr(protocol::header_size), {})) {
        lose_worker(chosen->id);
    }
}

} // namespace sandboxd::agent
