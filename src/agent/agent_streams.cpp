#include "agent/agent.hpp"

#include "agent/buffers.hpp"
#include "agent/system.hpp"

#include <fcntl.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>

namespace sandboxd::agent {

namespace {

using protocol::end_cause;
using protocol::failure_kind;

constexpr std::size_t most_streams = 4096;
/// Read from one pipe before the others get their turn.
constexpr std::size_t read_at_once = 128 * 1024;

} // namespace

stream* agent::find(std::uint32_t number) {
    const auto found = streams_.find(number);
    return found == streams_.end() ? nullptr : found->second.get();
}

void agent::erase(std::uint32_t number) {
    const auto found = streams_.find(number);
    if (found == streams_.end()) {
        return;
    }
    auto& target = *found->second;
    outbox_.remove(target);
    close_input(target);
    if (const auto at = workers_.find(target.worker); at != workers_.end()) {
        at->second.stream = 0;
    }
    streams_.erase(found);
}

/// Something of it may be ready to be sent.
void agent::send(stream& target) {
    const bool ready =
        target.outputs[0].pending() || target.outputs[1].pending() || (target.ended && !target.end_sent);
    if (active_ != nullptr && target.attached && ready) {
        outbox_.add(target);
    }
}

void agent::refuse(stream& target, failure_kind kind, int os_errno, std::string_view text) {
    target.never_started(kind, kind == failure_kind::invalid ? 126 : 0, os_errno, text);
    close_pipe(target, 0);
    close_pipe(target, 1);
    target.finish();
    send(target);
}

/// False when the host lies: the number is in use, or the payload is no list of fields.
bool agent::start(std::uint32_t number, std::string_view payload) {
    const auto options = read_start_options(payload);
    if (!options || streams_.contains(number)) {
        return false;
    }
    auto made = std::make_unique<stream>(number, *options, now_, unix_microseconds());
    auto& target = *made;
    if (streams_.size() >= most_streams) {
        // Not kept, so that it takes no room: the host hears it once.
        target.never_started(failure_kind::no_process, 0, 0, "too many commands at once in this sandbox");
        target.finish();
        static_cast<void>(target.take_turn(outbox_.control()));
        return true;
    }
    streams_.emplace(number, std::move(made));
    if (leaving_) {
        refuse(target, failure_kind::no_process, 0, "the sandbox is being stopped");
        return true;
    }
    if (options->operation) {
        start_operation(target, *options, payload);
        return true;
    }
    if (!options->run_id.empty() && run_ids_.contains(options->run_id, now_ / second)) {
        const auto runs = [&](const auto& one) {
            return one.first != number && !one.second->ended && one.second->run_id == options->run_id;
        };
        const bool running = std::any_of(streams_.begin(), streams_.end(), runs);
        refuse(target, failure_kind::duplicate, running ? EBUSY : 0,
               running ? "a command with this run id is running"
                       : "a command with this run id has been started before");
        return true;
    }
    order head{.kind = order_kind::run};
    descriptor input_end;
    if (!open_channels(target, *options, head, input_end)) {
        refuse(target, failure_kind::os, errno, "no pipe or terminal could be had for the command");
        return true;
    }
    std::vector<int> files;
    for (const auto* end : {&input_end, &target.pipes[0].command_end, &target.pipes[1].command_end}) {
        if (end->valid()) {
            files.push_back(end->get());
        }
    }
    last_start_ = now_;
    plan_tidy();
    worker* chosen = take_worker();
    if (chosen != nullptr && !give(*chosen, head, payload, files)) {
        lose_worker(chosen->id); // it was killed while nobody looked: one more try with a new one
        chosen = fork_worker();
        if (chosen != nullptr && !give(*chosen, head, payload, files)) {
            lose_worker(chosen->id);
            chosen = nullptr;
        }
    }
    if (chosen == nullptr) {
        refuse(target, failure_kind::no_process, errno,
               "no process could be started: the limit of processes is reached");
        return true;
    }
    if (!options->run_id.empty()) {
        run_ids_.add(options->run_id, now_ / second);
    }
    chosen->stream = number;
    target.worker = chosen->id;
    watch_pipe(target, 0);
    watch_pipe(target, 1);
    if (target.timeout_at != 0) {
        deadlines_.add({target.timeout_at, deadline_kind::timeout, number});
    }
    return true;
}

/// Makes the pipes or the terminal. The command's end of its input (or the terminal) goes into `input_end`.
bool agent::open_channels(stream& target, const start_options& options, order& head, descriptor& input_end) {
    if (options.mode == protocol::start_mode::terminal) {
        auto ends = make_terminal(options.rows, options.columns);
        target.in.fd.reset(fcntl(ends.master.get(), F_DUPFD_CLOEXEC, 3));
        if (!target.in.fd.valid()) {
            return false;
        }
        target.pipes[0].fd = std::move(ends.master);
        input_end = std::move(ends.slave);
        head.flags |= with_in | terminal;
        return true;
    }
    if (options.open_stdin) {
        auto ends = make_pipe();
        if (!ends.write.valid()) {
            return false;
        }
        set_nonblocking(ends.write.get());
        target.in.fd = std::move(ends.write);
        input_end = std::move(ends.read);
        head.flags |= with_in;
    } else {
        target.input.close();
    }
    const std::size_t count = options.mode == protocol::start_mode::separate ? 2 : 1;
    for (std::size_t i = 0; i < count; ++i) {
        auto ends = make_pipe();
        if (!ends.read.valid()) {
            return false;
        }
        set_nonblocking(ends.read.get());
        target.pipes[i].fd = std::move(ends.read);
        target.pipes[i].command_end = std::move(ends.write);
        head.flags |= i == 0 ? with_out : with_err;
    }
    return true;
}

void agent::stop(stream& target, end_cause cause) {
    if (!target.running || target.stop_cause != end_cause{}) {
        return;
    }
    if (target.file) {
        stop_operation(target, cause);
        return;
    }
    target.stop_cause = cause;
    order_worker(target.worker, order_kind::stop, target.grace_ms);
    target.backstop_at = now_ + target.grace_ms * millisecond + 2 * second;
    deadlines_.add({target.backstop_at, deadline_kind::backstop, target.number});
}

void agent::watch_pipe(stream& target, std::size_t which) {
    auto& one = target.pipes[which];
    if (one.fd.valid() && !one.watched && target.outputs[which].wants()) {
        one.watched =
            watch(one.fd.get(), which == 0 ? source::output : source::error, target.number, EPOLLIN);
    }
}

void agent::close_pipe(stream& target, std::size_t which) {
    auto& one = target.pipes[which];
    if (one.watched) {
        unwatch(one.fd.get());
    }
    one.watched = false;
    one.fd.reset();
    one.command_end.reset();
}

void agent::read_pipe(std::uint32_t number, std::size_t which) {
    if (auto* const target = find(number)) {
        read_pipe(*target, which);
        advance(*target);
    }
}

/// Reads what there is and there is room for, up to a bound. At the end of the pipe it is closed.
void agent::read_pipe(stream& target, std::size_t which) {
    auto& one = target.pipes[which];
    auto& output = target.outputs[which];
    for (std::size_t total = 0; total < read_at_once && one.fd.valid();) {
        if (!output.wants()) {
            if (one.watched) {
                unwatch(one.fd.get());
                one.watched = false;
            }
            break;
        }
        iovec pieces[2] = {{buffers.output, sizeof buffers.output}, {}};
        const bool dropping = output.dropping();
        const int parts = dropping ? 1 : output.prepare(pieces);
        const auto count = readv(one.fd.get(), pieces, parts);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0 && errno == EAGAIN) {
            break;
        }
        if (count <= 0) {
            close_pipe(target, which); // a terminal says EIO
            break;
        }
        total += static_cast<std::size_t>(count);
        if (target.arrived(which, static_cast<std::size_t>(count), !dropping)) {
            target.over_limit();
            stop(target, end_cause::output_limit);
        }
    }
    send(target);
}

/// The command's own process has ended: take what is in the pipes, and tell the end now or after the grace.
void agent::settle(stream& target) {
    for (std::size_t which = 0; which < 2; ++which) {
        auto& one = target.pipes[which];
        one.command_end.reset();
        read_pipe(target, which);
        one.owed = one.fd.valid() ? readable_bytes(one.fd.get()) : 0;
    }
    advance(target);
    if (!target.ended) {
        deadlines_.add({target.drained_at, deadline_kind::drained, target.number});
    }
}

/// Tells the end if there is nothing to wait for any more.
void agent::advance(stream& target) {
    if (target.ended || !target.complete(now_)) {
        return;
    }
    detach_pipes(target);
    close_input(target);
    target.finish();
    send(target);
    if (target.forgotten) {
        finished_.push_back(target.number);
    }
}

/// Somebody else holds the pipes of an ended command: they are read on, for nobody, so that a server lives
/// on.
void agent::detach_pipes(stream& target) {
    for (std::size_t which = 0; which < 2; ++which) {
        auto& one = target.pipes[which];
        if (!one.fd.valid()) {
            continue;
        }
        if (one.watched) {
            unwatch(one.fd.get());
            one.watched = false;
        }
        const auto id = next_drain_++;
        if (watch(one.fd.get(), source::drain, id, EPOLLIN)) {
            drains_[id] = std::move(one.fd);
        }
        one.fd.reset();
    }
}

void agent::drain(std::uint32_t id) {
    const auto found = drains_.find(id);
    if (found == drains_.end()) {
        return;
    }
    const auto count = read(found->second.get(), buffers.output, sizeof buffers.output);
    if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) {
        unwatch(found->second.get());
        drains_.erase(found);
    }
}

void agent::close_input(stream& target) {
    if (target.in.watched) {
        unwatch(target.in.fd.get());
        target.in.watched = false;
    }
    target.in.fd.reset();
    target.input.close();
}

/// Hands stdin on, as much as is taken, and acknowledges it.
void agent::write_input(stream& target) {
    auto& input = target.input;
    bool full = false;
    if (target.file) {
        feed_helper(target);
    }
    while (target.in.fd.valid() && !input.empty() && !full) {
        iovec pieces[2];
        const int parts = input.view(pieces);
        const auto count = writev(target.in.fd.get(), pieces, parts);
        if (count >= 0) {
            input.consume(static_cast<std::size_t>(count));
        } else if (errno == EAGAIN) {
            full = true;
        } else if (errno != EINTR) {
            close_input(target);
        }
    }
    if (full != target.in.watched && target.in.fd.valid()) {
        if (full) {
            target.in.watched = watch(target.in.fd.get(), source::input, target.number, EPOLLOUT);
        } else {
            unwatch(target.in.fd.get());
            target.in.watched = false;
        }
    }
    if (input.ended() && input.empty() && target.in.fd.valid()) {
        if (target.mode == protocol::start_mode::terminal) {
            constexpr char end_of_file = 4; // ^D: a terminal has no other way to say it
            [[maybe_unused]] const auto count = write(target.in.fd.get(), &end_of_file, 1);
        }
        close_input(target);
    }
    std::uint64_t count = 0;
    if (active_ != nullptr && target.attached && !target.ended && input.credit_due(count)) {
        protocol::append_credit(outbox_.control(), target.number, protocol::channel::in, count);
    }
}

} // namespace sandboxd::agent
