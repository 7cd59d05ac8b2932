// After `welcome`: the agent tells what it still holds, the link compares that with what it knows; and the
// end of streams.

#include "protocol/codec.hpp"
#include "protocol/fields.hpp"
#include "sandbox/end_frame.hpp"
#include "sandbox/link_core.hpp"

namespace sandboxd::sandboxes {

using protocol::channel;
using protocol::frame_type;
using protocol::tag;

struct link_core::told_state {
    run_id_bytes id{};
    std::uint64_t started_unix_us = 0;
    std::uint64_t out_offset = 0;
    std::uint64_t err_offset = 0;
    std::uint64_t in_offset = 0;
    bool ended = false;

    [[nodiscard]] static std::optional<told_state> parse(std::string_view payload);
};

namespace {

/// A command that nobody here started.
class found_stream final : public link_stream {
public:
    explicit found_stream(const run_id_bytes& id) : link_stream(id, {}, true, 0) {}
    void on_data(channel, std::string_view) override {}
    void on_end(end_record) override {}
    void on_failed(error) override {}
};

} // namespace

std::optional<link_core::told_state> link_core::told_state::parse(std::string_view payload) {
    told_state out;
    bool has_id = false;
    bool good = true;
    const auto number = [&good](std::uint64_t& to, const protocol::field& field) {
        good = good && field.u64().has_value();
        to = field.u64().value_or(0);
    };
    protocol::field_reader reader(payload);
    protocol::field field;
    while (reader.next(field)) {
        if (field.id == tag::run_id && field.value.size() == out.id.size()) {
            std::copy(field.value.begin(), field.value.end(), out.id.begin());
            has_id = true;
        } else if (field.id == tag::started_unix_us) {
            number(out.started_unix_us, field);
        } else if (field.id == tag::out_offset) {
            number(out.out_offset, field);
        } else if (field.id == tag::err_offset) {
            number(out.err_offset, field);
        } else if (field.id == tag::in_offset) {
            number(out.in_offset, field);
        } else if (field.id == tag::ended) {
            out.ended = true;
        }
    }
    if (reader.malformed() || !has_id || !good) {
        return std::nullopt;
    }
    return out;
}

link_core::lie link_core::on_stream_state(const protocol::frame_view& frame) {
    if (state_ != state::listing) {
        return "a stream_state after ready";
    }
    const auto told = told_state::parse(frame.payload);
    if (!told) {
        return "a malformed stream_state";
    }
    const auto stream = find(frame.header.stream);
    if (!stream) {
        return take_over(frame.header.stream, *told);
    }
    if (stream->id() != told->id || stream->confirmed_) {
        return "a stream_state that contradicts another";
    }
    return take_back(stream, *told);
}

/// One of ours: go on where the last channel ended.
link_core::lie link_core::take_back(const stream_ptr& stream, const told_state& told) {
    stream->confirmed_ = true;
    if (stream->phase_ == phase::forgotten) {
        protocol::append_empty(control_, frame_type::forget, stream->number_);
        return std::nullopt;
    }
    heard(*stream);
    auto& [out, err] = stream->outputs_;
    if (told.out_offset > out.received || told.err_offset > err.received) {
        return "it dropped output that was not acknowledged";
    }
    if (told.in_offset < stream->in_acknowledged_ || told.in_offset > stream->in_sent_) {
        return "a stream_state with input that was not sent";
    }
    stream->in_sent_ = told.in_offset;
    protocol::frame_writer(control_, frame_type::resume, stream->number_)
        .u64(tag::out_offset, out.received)
        .u64(tag::err_offset, err.received);
    send_credit(*stream, channel::out);
    if (stream->separate_) {
        send_credit(*stream, channel::err);
    }
    return std::nullopt;
}

/// From before this link: its output is of no use to anybody, its end is.
link_core::lie link_core::take_over(std::uint32_t number, const told_state& told) {
    if (by_id_.size() >= 2 * limits_.streams) {
        return "it holds more streams than it can have";
    }
    next_number_ = std::max(next_number_, number + 1);
    protocol::append_empty(control_, frame_type::forget, number);
    if (told.ended) {
        return std::nullopt;
    }
    auto stream = std::make_shared<found_stream>(told.id);
    stream->number_ = number;
    stream->phase_ = phase::forgotten;
    stream->confirmed_ = true;
    stream->found_ = true;
    stream->found_since_ = told.started_unix_us;
    if (const auto same = by_id_.find(told.id); same != by_id_.end()) {
        const auto mine = same->second;
        if (mine->phase_ != phase::waiting) {
            return "two streams with one run id";
        }
        drop(mine);
        mine->on_failed({errc::exists, "a command with this run id is running", false});
    }
    by_number_.emplace(number, stream);
    by_id_.emplace(told.id, stream);
    watcher_.on_found({told.id, told.started_unix_us, false});
    return std::nullopt;
}

link_core::lie link_core::on_ready() {
    state_ = state::ready;
    urgent_ = true;
    for (const auto& stream : all()) {
        if (!holds(stream)) {
            continue; // an owner that was called meanwhile has dropped it
        }
        if (auto wrong = settle(stream)) {
            return wrong;
        }
    }
    return std::nullopt;
}

/// The agent has told all it holds: what of this stream?
link_core::lie link_core::settle(const stream_ptr& stream) {
    if (stream->confirmed_) {
        if (stream->stop_wanted_) {
            protocol::append_empty(control_, frame_type::stop, stream->number_);
        }
        if (stream->size_ && stream->phase_ != phase::forgotten) {
            protocol::append_resize(control_, stream->number_, stream->size_->first, stream->size_->second);
        }
        queue_in(stream);
    } else if (stream->phase_ == phase::forgotten) {
        drop(stream); // it ended while nobody listened
    } else if (stream->phase_ == phase::heard) {
        return "it no longer knows a command that it was running";
    } else if (stream->stop_wanted_) {
        drop(stream);
        stream->on_end(end_record::before_start());
    } else {
        send_start(stream); // for the first time, or the agent never got it
    }
    return std::nullopt;
}

link_core::lie link_core::on_end(const stream_ptr& stream, std::string_view payload) {
    auto read = parse_end(payload);
    if (!read) {
        return "a malformed end";
    }
    if (stream->phase_ == phase::forgotten) {
        drop(stream);
        return std::nullopt;
    }
    if (read->out_total != stream->outputs_[0].received || read->err_total != stream->outputs_[1].received) {
        return "an end before all output has come";
    }
    send_forget(*stream);
    drop(stream);
    stream->on_end(std::move(read->record));
    return std::nullopt;
}

} // namespace sandboxd::sandboxes
