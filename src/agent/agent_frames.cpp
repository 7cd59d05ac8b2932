#include "agent/agent.hpp"

#include "agent/system.hpp"
#include "protocol/handshake.hpp"

#include <cstring>

// What the host's frames ask for. A handler answers false where its frame breaks the protocol: the channel is
// dropped then.

namespace sandboxd::agent {

using protocol::frame_type;

bool agent::on_frame(connection& from, const protocol::frame_view& frame) {
    if (frame.header.type == frame_type::hello) {
        return on_hello(from, frame.payload);
    }
    if (active_ != &from) {
        return false;
    }
    switch (frame.header.type) {
    case frame_type::ping:
        protocol::append_ping(outbox_.control(), frame_type::pong, frame.payload);
        return true;
    case frame_type::pong:
        return true;
    case frame_type::shutdown:
        begin_leaving();
        return true;
    case frame_type::start:
        return start(frame.header.stream, frame.payload);
    default:
        break;
    }
    auto* const target = find(frame.header.stream);
    return target == nullptr || on_stream_frame(*target, frame);
}

bool agent::on_hello(connection& from, std::string_view payload) {
    const auto message = protocol::read_hello(payload);
    if (!message) {
        return false;
    }
    if (active_ != nullptr && active_ != &from) {
        drop_connection(active_->id);
    }
    outbox_.clear();
    active_ = &from;
    from.welcomed = true;
    redial_pause_ = 0;
    const auto version = protocol::common_version(*message);
    protocol::welcome answer{.version = version.value_or(protocol::version)};
    std::memcpy(answer.boot_id.data(), boot_id_, sizeof boot_id_);
    protocol::append_welcome(outbox_.control(), message->nonce, answer);
    if (!version) {
        flush(); // so that the host can tell why
        return false;
    }
    attach();
    return true;
}

void agent::attach() {
    for (auto& [number, target] : streams_) {
        target->detach();
        target->append_state(outbox_.control());
    }
    protocol::append_empty(outbox_.control(), frame_type::ready, 0);
}

bool agent::on_stream_frame(stream& target, const protocol::frame_view& frame) {
    const auto which = static_cast<protocol::channel>(frame.header.flags);
    switch (frame.header.type) {
    case frame_type::data:
        if (which != protocol::channel::in || !target.input.accept(frame.payload)) {
            return false;
        }
        write_input(target);
        return true;
    case frame_type::end_of_data:
        target.input.end();
        write_input(target);
        return which == protocol::channel::in;
    case frame_type::credit: {
        const auto count = protocol::exact_u64(frame.payload);
        if (!count || which == protocol::channel::in) {
            return false;
        }
        const auto index = which == protocol::channel::out ? std::size_t{0} : std::size_t{1};
        if (!target.outputs[index].credit(*count)) {
            return false;
        }
        watch_pipe(target, index);
        if (target.file) {
            on_helper(target.file->helper);
        }
        return true;
    }
    case frame_type::stop:
        stop(target, protocol::end_cause::stopped);
        return true;
    case frame_type::signal: {
        const auto number = protocol::exact_u32(frame.payload);
        if (!number || *number == 0 || *number > 64) {
            return false;
        }
        if (target.running) {
            order_worker(target.worker, order_kind::signal, *number);
        }
        return true;
    }
    case frame_type::resize: {
        const auto rows = protocol::exact_u16(frame.payload.substr(0, 2));
        const auto columns =
            frame.payload.size() == 4 ? protocol::exact_u16(frame.payload.substr(2)) : std::nullopt;
        if (!rows || !columns) {
            return false;
        }
        if (target.mode == protocol::start_mode::terminal && target.pipes[0].fd.valid()) {
            resize_terminal(target.pipes[0].fd.get(), *rows, *columns);
        }
        return true;
    }
    case frame_type::resume:
        return on_resume(target, frame.payload);
    case frame_type::forget:
        if (target.ended) {
            erase(target.number);
            return true;
        }
        target.forget();
        target.attached = true;
        if (target.file) {
            abandon_operation(target);
            return true;
        }
        watch_pipe(target, 0);
        watch_pipe(target, 1);
        return true;
    default:
        return false;
    }
}

bool agent::on_resume(stream& target, std::string_view payload) {
    const auto out = protocol::find_field(payload, protocol::tag::out_offset);
    const auto err = protocol::find_field(payload, protocol::tag::err_offset);
    const auto out_offset = out ? out->u64() : target.outputs[0].first_held();
    const auto err_offset = err ? err->u64() : target.outputs[1].first_held();
    if (target.attached || !out_offset || !err_offset || !target.outputs[0].resume(*out_offset) ||
        !target.outputs[1].resume(*err_offset)) {
        return false;
    }
    target.attached = true;
    write_input(target);
    send(target);
    return true;
}

} // namespace sandboxd::agent
