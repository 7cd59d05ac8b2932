// What the agent says, checked frame by frame. Each function answers with the rule that was broken, if any.

#include "protocol/codec.hpp"
#include "protocol/fields.hpp"
#include "sandbox/link_core.hpp"

namespace sandboxd::sandboxes {

using protocol::channel;
using protocol::frame_type;
using protocol::tag;

namespace {

std::string_view name_of(protocol::parse_status status) {
    switch (status) {
    case protocol::parse_status::too_long:
        return "a frame is too long";
    case protocol::parse_status::unknown_type:
        return "a frame has a type that agents don't send";
    case protocol::parse_status::reserved:
        return "a reserved byte is set or a channel does not exist";
    case protocol::parse_status::bad_stream:
        return "a frame has a stream number where none belongs, or none";
    case protocol::parse_status::ok:
    case protocol::parse_status::need_more:
        break;
    }
    return "a frame is malformed";
}

} // namespace

std::optional<std::string_view> link_core::receive(std::string_view bytes, time_point now) {
    now_ = now;
    last_heard_ = now;
    if (state_ == state::closed) {
        return "bytes on a closed channel";
    }
    if (state_ != state::greeting) {
        return receive_frames(bytes);
    }
    protocol::welcome found;
    if (!finder_->feed(bytes, found)) {
        return finder_->skipped() > limits_.garbage ? lie("no welcome among its first bytes") : lie();
    }
    if (found.version < protocol::oldest_version || found.version > protocol::version) {
        return "it speaks a version that was not offered";
    }
    if (boot_id_ && *boot_id_ != found.boot_id) {
        return "it is another agent than before";
    }
    boot_id_ = found.boot_id;
    state_ = state::listing;
    const std::string rest(finder_->rest());
    finder_.reset();
    return receive_frames(rest);
}

link_core::lie link_core::receive_frames(std::string_view bytes) {
    parser_.feed(bytes);
    protocol::frame_view frame;
    for (;;) {
        const auto status = parser_.next(frame);
        if (status == protocol::parse_status::need_more) {
            return std::nullopt;
        }
        if (status != protocol::parse_status::ok) {
            return name_of(status);
        }
        if (auto wrong = on_frame(frame)) {
            return wrong;
        }
    }
}

link_core::lie link_core::on_frame(const protocol::frame_view& frame) {
    if (frame.header.stream == 0) {
        return on_channel_frame(frame);
    }
    if (frame.header.type == frame_type::stream_state) {
        return on_stream_state(frame);
    }
    if (state_ != state::ready) {
        return "a frame about a stream before ready";
    }
    const auto stream = find(frame.header.stream);
    if (!stream) {
        return std::nullopt; // ended and forgotten; what was under way is of no interest
    }
    const auto which = static_cast<channel>(frame.header.flags);
    switch (frame.header.type) {
    case frame_type::started:
        return on_started(*stream, frame.payload);
    case frame_type::data:
        return on_data(*stream, which, frame.payload);
    case frame_type::credit:
        return on_credit(*stream, which, frame.payload);
    case frame_type::end_of_data:
        return on_end_of_data(*stream, which);
    case frame_type::end:
        return on_end(stream, frame.payload);
    default:
        return "a frame has a type that agents don't send";
    }
}

link_core::lie link_core::on_channel_frame(const protocol::frame_view& frame) {
    switch (frame.header.type) {
    case frame_type::ready:
        return state_ == state::listing ? on_ready() : lie("ready comes twice");
    case frame_type::ping:
        return on_ping(frame.payload);
    case frame_type::pong:
        if (!pinged_ || protocol::exact_u64(frame.payload) != ping_count_) {
            return "a pong without a ping";
        }
        pinged_.reset();
        return std::nullopt;
    default:
        return "a frame does not belong here";
    }
}

link_core::lie link_core::on_ping(std::string_view payload) {
    if (!pong_waits_) {
        protocol::append_ping(control_, frame_type::pong, payload);
        pong_waits_ = true;
        urgent_ = true;
    }
    return std::nullopt;
}

/// The agent has it: its start needs no repeating.
void link_core::heard(link_stream& stream) {
    if (stream.phase_ == phase::sent) {
        stream.phase_ = phase::heard;
        stream.start_frame_.clear();
    }
}

link_core::lie link_core::on_started(link_stream& stream, std::string_view payload) {
    const auto pid = protocol::find_field(payload, tag::pid);
    if (!pid || !pid->u32()) {
        return "a started frame without a pid";
    }
    if (stream.phase_ == phase::forgotten) {
        return std::nullopt;
    }
    heard(stream);
    stream.on_started(*pid->u32());
    return std::nullopt;
}

link_core::lie link_core::on_data(link_stream& stream, channel which, std::string_view payload) {
    if (which == channel::in) {
        return "data on the input of a stream";
    }
    if (which == channel::err && !stream.separate_) {
        return "data on a channel that was not asked for";
    }
    if (stream.phase_ == phase::forgotten) {
        return std::nullopt;
    }
    auto& output = stream.outputs_[which == channel::err ? 1 : 0];
    if (output.ended) {
        return "data after its end";
    }
    if (output.received + payload.size() > output.credited + protocol::window) {
        return "data beyond the window";
    }
    if (output.received + payload.size() > stream.keep_bytes_) {
        return "data beyond what was asked for";
    }
    heard(stream);
    output.received += payload.size();
    if (output.received - output.credited >= protocol::window / 2) {
        send_credit(stream, which);
    }
    stream.on_data(which, payload);
    return std::nullopt;
}

link_core::lie link_core::on_credit(link_stream& stream, channel which, std::string_view payload) {
    const auto count = protocol::exact_u64(payload);
    if (which != channel::in || !count) {
        return "a malformed credit";
    }
    if (stream.phase_ == phase::forgotten) {
        return std::nullopt;
    }
    if (*count > stream.in_sent_) {
        return "a credit for input that was not sent";
    }
    if (*count <= stream.in_acknowledged_) {
        return std::nullopt;
    }
    heard(stream);
    stream.in_buffer_.erase(0, static_cast<std::size_t>(*count - stream.in_acknowledged_));
    stream.in_acknowledged_ = *count;
    if (std::exchange(stream.in_was_full_, false)) {
        stream.on_writable();
    }
    return std::nullopt;
}

link_core::lie link_core::on_end_of_data(link_stream& stream, channel which) {
    if (which == channel::in || (which == channel::err && !stream.separate_)) {
        return "the end of a channel that was not asked for";
    }
    heard(stream);
    stream.outputs_[which == channel::err ? 1 : 0].ended = true; // repeated after a cut
    return std::nullopt;
}

} // namespace sandboxd::sandboxes
