#include "agent_client.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>

// What the agent says to its host.

namespace sandboxd::agent::test {

using protocol::tag;

void client::handle(const protocol::frame_view& frame) {
    const auto number = frame.header.stream;
    switch (frame.header.type) {
    case protocol::frame_type::ready:
        ready_ = true;
        return;
    case protocol::frame_type::pong:
        ++pongs_;
        return;
    case protocol::frame_type::started:
        streams_[number].pid = protocol::find_field(frame.payload, tag::pid).value().u32();
        return;
    case protocol::frame_type::data: {
        auto& target = streams_[number];
        BOOST_REQUIRE(!target.ended);
        const bool out = frame.header.flags == static_cast<std::uint8_t>(protocol::channel::out);
        auto& received = out ? target.out_received : target.err_received;
        received += frame.payload.size();
        if (!discard) {
            (out ? target.out : target.err).append(frame.payload);
        }
        if (automatic_credit) {
            std::string answer;
            protocol::append_credit(answer, number, static_cast<protocol::channel>(frame.header.flags),
                                    received);
            send(answer);
        }
        return;
    }
    case protocol::frame_type::credit:
        streams_[number].stdin_credit = *protocol::exact_u64(frame.payload);
        return;
    case protocol::frame_type::end:
        handle_end(streams_[number], frame.payload);
        return;
    case protocol::frame_type::stream_state: {
        auto& state = held_[number];
        const auto offset = [&](tag id) {
            return protocol::find_field(frame.payload, id).value().u64().value();
        };
        state.out_offset = offset(tag::out_offset);
        state.err_offset = offset(tag::err_offset);
        state.in_offset = offset(tag::in_offset);
        state.ended = protocol::find_field(frame.payload, tag::ended).has_value();
        if (const auto id = protocol::find_field(frame.payload, tag::run_id)) {
            state.run_id = id->value;
        }
        next_ = std::max(next_, number + 1);
        return;
    }
    default:
        BOOST_FAIL("unexpected frame");
        return;
    }
}

void client::handle_end(outcome& target, std::string_view payload) {
    BOOST_REQUIRE(!target.ended);
    target.ended = true;
    protocol::field_reader reader(payload);
    for (protocol::field one; reader.next(one);) {
        switch (one.id) {
        case tag::cause:
            target.cause = static_cast<protocol::end_cause>(one.u8().value());
            break;
        case tag::failure:
            target.failure = static_cast<protocol::failure_kind>(one.u16().value());
            break;
        case tag::exit_code:
            target.exit_code = one.u32();
            break;
        case tag::exit_signal:
            target.exit_signal = one.u32();
            break;
        case tag::out_total:
            target.out_total = one.u64().value();
            break;
        case tag::err_total:
            target.err_total = one.u64().value();
            break;
        case tag::dropped:
            target.dropped = one.u64().value();
            break;
        case tag::duration_us:
            target.duration_us = one.u64().value();
            break;
        case tag::text:
            target.text = one.value;
            break;
        default:
            break;
        }
    }
    BOOST_REQUIRE(!reader.malformed());
}

} // namespace sandboxd::agent::test
