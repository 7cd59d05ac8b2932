// What the link does by the clock: gives up on commands, asks a silent channel, acknowledges ends.

#include "protocol/codec.hpp"
#include "sandbox/link_core.hpp"

namespace sandboxd::sandboxes {

link_core::verdict link_core::tick(time_point now) {
    now_ = now;
    due_ = time_point::max();
    if (forget_due_ <= now) {
        urgent_ = true;
    } else {
        bring_forward(forget_due_);
    }
    if (check_deadlines(now) == verdict::stuck) {
        return verdict::stuck;
    }
    return check_silence(now);
}

link_core::verdict link_core::check_deadlines(time_point now) {
    for (const auto& stream : all()) {
        if (holds(stream) && stream->deadline_ <= now) {
            if (stream->given_up_) {
                return verdict::stuck;
            }
            give_up(stream, now);
        }
        bring_forward(stream->deadline_);
    }
    return verdict::well;
}

/// The agent should have ended it by itself long ago.
void link_core::give_up(const stream_ptr& stream, time_point now) {
    const bool waited_for = stream->phase_ != phase::forgotten;
    const bool sent = stream->phase_ != phase::waiting;
    stream->given_up_ = true;
    stream->deadline_ = now + limits_.stop_within;
    abandon(*stream);
    stop(stream->id());
    if (waited_for) {
        stream->on_failed({errc::timeout, "the sandbox did not answer in time", sent});
    }
}

link_core::verdict link_core::check_silence(time_point now) {
    if (state_ == state::closed) {
        return verdict::well;
    }
    if (pinged_) {
        bring_forward(*pinged_ + limits_.pong_within);
        return *pinged_ + limits_.pong_within <= now ? verdict::dead : verdict::well;
    }
    const auto quiet = by_id_.empty() ? limits_.quiet_idle : limits_.quiet_busy;
    if (last_heard_ + quiet > now || state_ != state::ready) {
        // The time for a greeting is the caller's to limit.
        bring_forward(std::max(last_heard_ + quiet, now + limits_.forget_within));
        return verdict::well;
    }
    std::string payload;
    protocol::append_u64(payload, ++ping_count_);
    protocol::append_ping(control_, protocol::frame_type::ping, payload);
    urgent_ = true;
    pinged_ = now;
    bring_forward(now + limits_.pong_within);
    return verdict::well;
}

} // namespace sandboxd::sandboxes
