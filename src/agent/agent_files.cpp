#include "agent/agent.hpp"

#include "agent/buffers.hpp"
#include "agent/system.hpp"

#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <cerrno>
#include <csignal>
#include <cstring>

namespace sandboxd::agent {

namespace {

using protocol::end_cause;
using protocol::failure_kind;
using protocol::file_operation;

/// A helper answers by itself at its time; so much later it is ended.
constexpr instant answer_grace = 1 * second;

bool is_known(file_operation operation) {
    return operation >= file_operation::read && operation <= file_operation::grep;
}

} // namespace

agent::operation_class& agent::class_of(const stream& target) {
    return target.file->slow() ? searches_ : quick_;
}

void agent::start_operation(stream& target, const start_options& options, std::string_view payload) {
    if (!is_known(*options.operation)) {
        refuse(target, failure_kind::unsupported, 0, "this agent does not know the file operation");
        return;
    }
    if (payload.size() > protocol::longest_order) {
        refuse(target, failure_kind::invalid, ENAMETOOLONG, "the path or pattern is too long");
        return;
    }
    target.file = std::make_unique<file_work>();
    target.file->operation = *options.operation;
    target.file->whose = {.user = options.user, .group = options.group};
    target.file->order = payload;
    target.file->input_over = !options.open_stdin;
    if (!options.open_stdin) {
        target.input.close();
    }
    if (target.timeout_at != 0) {
        target.timeout_at += answer_grace;
        deadlines_.add({target.timeout_at, deadline_kind::timeout, target.number});
    }
    plan_tidy();
    class_of(target).waiting.push_back(target.number);
    run_waiting();
}

void agent::run_waiting() {
    for (auto* const kind : {&quick_, &searches_}) {
        while (kind->running < kind->most && !kind->waiting.empty()) {
            auto* const target = find(kind->waiting.front());
            kind->waiting.pop_front();
            if (target != nullptr && target->running) {
                begin_operation(*target);
            }
        }
    }
}

void agent::begin_operation(stream& target) {
    const std::string order = std::move(target.file->order);
    auto* chosen = take_helper(target.file->whose);
    if (chosen != nullptr && !send_order(*chosen, file_order_kind::run, order)) {
        lose_helper(chosen->id, true); // it was killed while nobody looked: one more try with a new one
        chosen = fork_helper(target.file->whose);
        if (chosen != nullptr && !send_order(*chosen, file_order_kind::run, order)) {
            lose_helper(chosen->id, true);
            chosen = nullptr;
        }
    }
    if (chosen == nullptr) {
        refuse(target, failure_kind::no_process, errno,
               "no process could be started: the limit of processes is reached");
        return;
    }
    ++class_of(target).running;
    chosen->stream = target.number;
    target.file->helper = chosen->id;
    write_input(target);
}

agent::helper* agent::take_helper(const file_user& whose) {
    helper* out = nullptr;
    for (auto& [id, one] : helpers_) {
        if (one.stream == 0 && one.whose == whose && (out == nullptr || one.idle_since > out->idle_since)) {
            out = &one;
        }
    }
    return out != nullptr ? out : fork_helper(whose);
}

agent::helper* agent::fork_helper(const file_user& whose) {
    if (!locks_.valid()) {
        locks_.reset(memfd_create("locks", MFD_CLOEXEC));
    }
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        return nullptr;
    }
    descriptor own(ends[0]);
    const descriptor theirs(ends[1]);
    const pid_t pid = fork();
    if (pid == 0) {
        serve_files({.socket = theirs.get(),
                     .null = null_.get(),
                     .locks = locks_.get(),
                     .whose = whose,
                     .reset_oom_score = reset_oom_score_});
    }
    const auto id = next_helper_++;
    if (pid < 0 || !watch(own.get(), source::helper, id, EPOLLIN)) {
        return nullptr; // at the end of its socket it leaves
    }
    auto& one = helpers_[id];
    one.id = id;
    one.pid = pid;
    one.socket = std::move(own);
    one.whose = whose;
    one.idle_since = now_;
    return &one;
}

bool agent::send_order(helper& to, file_order_kind kind, std::string_view bytes) {
    file_order head{.kind = kind, .size = static_cast<std::uint32_t>(bytes.size())};
    iovec pieces[2] = {{&head, sizeof head}, {const_cast<char*>(bytes.data()), bytes.size()}};
    msghdr message{};
    message.msg_iov = pieces;
    message.msg_iovlen = 2;
    return sendmsg(to.socket.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT) > 0;
}

/// Hands on what has come of the input.
void agent::feed_helper(stream& target) {
    auto& work = *target.file;
    const auto found = helpers_.find(work.helper);
    if (found == helpers_.end()) {
        return;
    }
    auto& to = found->second;
    bool taken = true;
    while (taken && !work.input_over && !work.aborted && !target.input.empty()) {
        iovec pieces[2];
        static_cast<void>(target.input.view(pieces));
        const auto size = std::min(pieces[0].iov_len, largest_report);
        taken = send_order(to, file_order_kind::input, {static_cast<char*>(pieces[0].iov_base), size});
        target.input.consume(taken ? size : 0);
    }
    if (taken && !work.input_over && (work.aborted || target.input.ended())) {
        taken = send_order(to, work.aborted ? file_order_kind::abort : file_order_kind::input_end, {});
        work.input_over = taken;
    }
    if (to.wants_write == taken) { // if it is dead, its end tells
        to.wants_write = !taken;
        watch_helper(to);
    }
}

void agent::watch_helper(helper& one) {
    change_watch(one.socket.get(), source::helper, one.id,
                 (one.paused ? 0U : EPOLLIN) | (one.wants_write ? EPOLLOUT : 0U));
}

void agent::on_helper(std::uint32_t id) {
    for (;;) {
        const auto found = helpers_.find(id);
        if (found == helpers_.end()) {
            return;
        }
        auto& from = found->second;
        auto* const target = from.stream != 0 ? find(from.stream) : nullptr;
        if (from.wants_write && target != nullptr) {
            write_input(*target);
        }
        const bool full =
            target != nullptr && !target->outputs[0].dropping() && target->outputs[0].room() < largest_report;
        if (from.paused != full) {
            from.paused = full;
            watch_helper(from);
        }
        if (full) {
            return;
        }
        const auto count = recv(from.socket.get(), buffers.output, sizeof buffers.output, MSG_DONTWAIT);
        if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
            return;
        }
        if (count < static_cast<ssize_t>(sizeof(file_report))) {
            lose_helper(id, count < 0 && errno == ECONNRESET); // a reset: there was a packet it has not read
            return;
        }
        on_file_report(from, {buffers.output, static_cast<std::size_t>(count)});
        if (from.stream == 0) {
            run_waiting();
            return;
        }
    }
}

void agent::on_file_report(helper& from, std::string_view bytes) {
    auto* const target = find(from.stream);
    file_report head;
    std::memcpy(&head, bytes.data(), sizeof head);
    bytes.remove_prefix(sizeof head);
    const auto text = bytes.substr(0, head.text_size);
    bytes.remove_prefix(text.size());
    const bool done = head.kind == file_report_kind::done;
    if (target == nullptr) {
        return; // nothing is asked of it
    }
    if (!target->outputs[0].dropping()) {
        target->outputs[0].append(bytes);
    }
    if (!done) {
        send(*target);
        return;
    }
    from.stream = 0;
    from.idle_since = now_;
    target->answered(head.answer, text, now_);
    end_operation(*target);
}

/// It is over, whichever way.
void agent::end_operation(stream& target) {
    if (target.file->helper != 0) {
        target.file->helper = 0;
        --class_of(target).running;
    }
    target.finish();
    send(target);
    if (target.forgotten) {
        finished_.push_back(target.number);
    }
}

/// Nothing more is to come of it. Its helper may be stuck where no signal reaches it: nobody waits for that.
void agent::stop_operation(stream& target, end_cause cause) {
    const auto found = helpers_.find(target.file->helper);
    if (found != helpers_.end()) {
        found->second.stream = 0;
        lose_helper(found->first, false);
    }
    target.broken_off(cause, now_);
    end_operation(target);
    run_waiting();
}

/// Nobody waits for its answer. What changes files ends by itself, so that no half of one stays behind.
void agent::abandon_operation(stream& target) {
    if (!target.running) {
        return;
    }
    if (target.file->helper == 0 || !target.file->changes()) {
        stop_operation(target, end_cause::stopped);
    } else if (!target.input.ended()) {
        target.file->aborted = true;
        feed_helper(target);
    }
}

/// A helper is gone, or to go. `unread`: there was a packet it never took; where that was its order, nothing
/// has been done.
void agent::lose_helper(std::uint32_t id, bool unread) {
    const auto found = helpers_.find(id);
    if (found == helpers_.end()) {
        return;
    }
    auto* const target = found->second.stream != 0 ? find(found->second.stream) : nullptr;
    unwatch(found->second.socket.get());
    if (found->second.pid > 0) {
        kill(found->second.pid, SIGKILL); // not yet reaped, so that the pid is its own
    }
    helpers_.erase(found);
    if (target == nullptr) {
        return;
    }
    if (unread && target->outputs[0].total() == 0 && target->file->input_over && !target->with_input) {
        target->never_started(failure_kind::no_process, 0, 0,
                              "a command has killed the process that was to do this; nothing was done");
    } else {
        target->broken_off(end_cause::lost, now_);
    }
    end_operation(*target);
    run_waiting();
}

void agent::retire_helpers(instant idle_before) {
    std::erase_if(helpers_, [&](const auto& one) {
        const bool old = one.second.stream == 0 && one.second.idle_since <= idle_before;
        if (old) {
            unwatch(one.second.socket.get());
        }
        return old;
    });
}

} // namespace sandboxd::agent
