#include "agent/stream.hpp"

#include <sys/wait.h>

#include <algorithm>

namespace sandboxd::agent {

namespace {

using protocol::end_cause;
using protocol::tag;

constexpr std::size_t turn_size = 32 * 1024;

protocol::channel channel_of(std::size_t which) {
    return which == 0 ? protocol::channel::out : protocol::channel::err;
}

} // namespace

stream::stream(std::uint32_t stream_number, const start_options& options, instant at, std::uint64_t unix_us)
    : number(stream_number),
      run_id(options.run_id),
      mode(options.mode),
      limit(options.limit_bytes),
      grace_ms(options.grace_ms),
      started_at(at),
      started_unix_us(unix_us) {
    with_input = options.open_stdin || mode == protocol::start_mode::terminal;
    for (auto& output : outputs) {
        output.set_keep(options.keep_bytes);
    }
    if (options.timeout_ms) {
        constexpr std::uint64_t longest = 1'000'000'000; // eleven days, in milliseconds
        timeout_at = at + static_cast<instant>(std::min(*options.timeout_ms, longest)) * millisecond;
    }
}

bool stream::take_turn(std::string& out) {
    const bool on_out = outputs[0].pending();
    const bool on_err = outputs[1].pending();
    if (on_out || on_err) {
        const std::size_t which = on_out && !(on_err && last_was_out_) ? 0 : 1;
        last_was_out_ = which == 0;
        outputs[which].take(out, number, channel_of(which), turn_size);
        return outputs[0].pending() || outputs[1].pending() || (ended && !end_sent);
    }
    if (ended && !end_sent) {
        append_end(out);
        end_sent = true;
    }
    return false;
}

bool stream::arrived(std::size_t which, std::size_t count, bool into_ring) {
    auto& one = pipes[which];
    one.owed -= std::min(one.owed, count);
    const bool within = read_ <= limit;
    read_ += count;
    auto kept = into_ring ? count : 0;
    if (read_ > limit) {
        kept -= static_cast<std::size_t>(std::min<std::uint64_t>(kept, read_ - limit));
    }
    outputs[which].commit(kept);
    outputs[which].drop(count - kept);
    if (read_ <= limit || !within) {
        return false;
    }
    for (auto& output : outputs) {
        output.close();
    }
    return true;
}

void stream::exited(int status, instant at) {
    status_ = status;
    running = false;
    duration_us_ = static_cast<std::uint64_t>((at - started_at) / 1000);
    drained_at = at + drain_grace;
    cause_ = stop_cause == end_cause{} ? end_cause::exited : stop_cause;
}

void stream::over_limit() {
    if (!running && cause_ == end_cause::exited) {
        cause_ = end_cause::output_limit;
    }
}

void stream::never_started(protocol::failure_kind failure, std::uint32_t exit_code, int os_errno,
                           std::string_view text) {
    running = false;
    tree_gone = true;
    cause_ = end_cause::never_started;
    failure_ = failure;
    failure_code_ = exit_code;
    os_errno_ = os_errno;
    text_ = text;
}

void stream::lost(instant at) {
    if (running) {
        exited(-1, at);
        cause_ = stop_cause == end_cause{} ? end_cause::lost : stop_cause;
    }
    tree_gone = true;
}

void stream::answered(const file_answer& answer, std::string_view text, instant at) {
    broken_off(end_cause::exited, at);
    failure_ = answer.failure;
    os_errno_ = answer.os_errno;
    marks_ = answer.marks;
    length_ = answer.length;
    text_ = text;
}

void stream::broken_off(end_cause cause, instant at) {
    running = false;
    tree_gone = true;
    duration_us_ = static_cast<std::uint64_t>((at - started_at) / 1000);
    cause_ = cause;
}

bool stream::complete(instant at) const {
    if (running || (stop_cause != end_cause{} && !tree_gone)) {
        return false;
    }
    const auto drained = [&](const pipe& one) {
        return !one.fd.valid() || (at >= drained_at && one.owed == 0);
    };
    return drained(pipes[0]) && drained(pipes[1]);
}

void stream::finish() {
    ended = true;
    if (!input.closed()) {
        input.close();
    }
}

void stream::forget() {
    forgotten = true;
    for (auto& output : outputs) {
        output.forget();
    }
}

void stream::detach() {
    attached = false;
    end_sent = false;
    input.forget_credit();
}

void stream::append_state(std::string& out) const {
    protocol::frame_writer frame(out, protocol::frame_type::stream_state, number);
    if (!run_id.empty()) {
        frame.bytes(tag::run_id, run_id);
    }
    frame.u64(tag::started_unix_us, started_unix_us)
        .u64(tag::out_offset, outputs[0].first_held())
        .u64(tag::err_offset, outputs[1].first_held())
        .u64(tag::in_offset, input.arrived());
    if (pid != 0) {
        frame.u32(tag::pid, static_cast<std::uint32_t>(pid));
    }
    if (ended) {
        frame.empty(tag::ended);
    }
}

void stream::append_end(std::string& out) const {
    protocol::frame_writer frame(out, protocol::frame_type::end, number);
    frame.u8(tag::cause, static_cast<std::uint8_t>(cause_));
    if (cause_ == end_cause::never_started) {
        frame.u16(tag::failure, static_cast<std::uint16_t>(failure_))
            .u32(tag::os_errno, static_cast<std::uint32_t>(os_errno_))
            .bytes(tag::text, text_);
        if (failure_code_ != 0) {
            frame.u32(tag::exit_code, failure_code_);
        }
        return;
    }
    if (file) {
        append_answer(frame);
    } else if (status_ != -1 && WIFEXITED(status_)) {
        frame.u32(tag::exit_code, static_cast<std::uint32_t>(WEXITSTATUS(status_)));
    } else if (status_ != -1) {
        frame.u32(tag::exit_signal, static_cast<std::uint32_t>(WTERMSIG(status_)));
    }
    frame.u64(tag::out_total, outputs[0].total())
        .u64(tag::err_total, outputs[1].total())
        .u64(tag::dropped, outputs[0].dropped() + outputs[1].dropped())
        .u64(tag::duration_us, duration_us_);
}

void stream::append_answer(protocol::frame_writer& frame) const {
    if (cause_ != end_cause::exited) {
        return;
    }
    frame.u32(tag::exit_code, failure_ == protocol::failure_kind::none ? 0 : 1)
        .u32(tag::option_flags, marks_)
        .u64(tag::length, length_);
    if (failure_ != protocol::failure_kind::none) {
        frame.u16(tag::failure, static_cast<std::uint16_t>(failure_))
            .u32(tag::os_errno, static_cast<std::uint32_t>(os_errno_))
            .bytes(tag::text, text_);
    }
}

} // namespace sandboxd::agent
