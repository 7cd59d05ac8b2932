#include "sandbox/link_core.hpp"

#include "protocol/codec.hpp"
#include "sandbox/start_frame.hpp"

#include <cstring>

namespace sandboxd::sandboxes {

namespace {

constexpr std::size_t gather = 128 * 1024;  ///< bytes of data handed out at once
constexpr std::size_t turn = 32 * 1024;     ///< of one stream, before it is another's turn
constexpr std::size_t forgets_at_most = 64; ///< held back

error gone(const std::string& why, bool may_have_started) {
    return {errc::gone, why, may_have_started};
}

} // namespace

std::size_t link_core::id_hash::operator()(const run_id_bytes& id) const noexcept {
    std::uint64_t low = 0;
    std::uint64_t high = 0;
    std::memcpy(&low, id.data(), sizeof low);
    std::memcpy(&high, id.data() + sizeof low, sizeof high);
    return static_cast<std::size_t>((low ^ (high >> 7)) * 0x9E3779B97F4A7C15U);
}

link_core::link_core(link_limits limits, observer& watcher) : limits_(limits), watcher_(watcher) {}

void link_core::open(const protocol::nonce_bytes& nonce, time_point now) {
    cut();
    now_ = now;
    state_ = state::greeting;
    finder_.emplace(nonce);
    parser_.reset();
    protocol::append_hello(control_, {.nonce = nonce});
    urgent_ = true;
    last_heard_ = now;
    bring_forward(now + limits_.quiet_busy);
}

void link_core::cut() {
    state_ = state::closed;
    finder_.reset();
    control_.clear();
    urgent_ = false;
    pong_waits_ = false;
    pinged_.reset();
    forgets_waiting_ = 0;
    forget_due_ = time_point::max();
    with_input_.clear();
    for (auto& [id, stream] : by_id_) {
        stream->confirmed_ = false;
        stream->in_queued_ = false;
        stream->in_end_sent_ = false;
    }
}

void link_core::take_output(std::string& out) {
    if (out.empty()) {
        out.swap(control_);
    } else {
        out.append(control_);
    }
    control_.clear();
    urgent_ = false;
    pong_waits_ = false;
    forgets_waiting_ = 0;
    forget_due_ = time_point::max();
    take_data(out);
}

/// Streams with input take turns, so that a large upload holds up nobody.
void link_core::take_data(std::string& out) {
    while (out.size() < gather && !with_input_.empty()) {
        auto stream = std::move(with_input_.front());
        with_input_.pop_front();
        if (take_data_of(*stream, out)) {
            with_input_.push_back(std::move(stream));
        } else {
            stream->in_queued_ = false;
        }
    }
}

/// One turn; true when there is more for another.
bool link_core::take_data_of(link_stream& stream, std::string& out) {
    if (stream.phase_ == phase::forgotten || stream.phase_ == phase::waiting) {
        return false;
    }
    const auto skip = static_cast<std::size_t>(stream.in_sent_ - stream.in_acknowledged_);
    const auto piece = std::string_view(stream.in_buffer_).substr(skip, turn);
    if (!piece.empty()) {
        protocol::append_data(out, stream.number_, protocol::channel::in, piece);
        stream.in_sent_ += piece.size();
    }
    if (skip + piece.size() < stream.in_buffer_.size()) {
        return true;
    }
    if (stream.in_ended_ && !stream.in_end_sent_) {
        protocol::append_end_of_data(out, stream.number_, protocol::channel::in);
        stream.in_end_sent_ = true;
    }
    return false;
}

result<void> link_core::start(std::shared_ptr<link_stream> stream, time_point now) {
    if (failed_) {
        return gone("the sandbox has ended", false);
    }
    if (by_id_.size() >= limits_.streams) {
        return error{errc::unavailable, "the sandbox runs too many commands at once", false};
    }
    if (!by_id_.emplace(stream->id(), stream).second) {
        return error{errc::exists, "a command with this run id is running", false};
    }
    bring_forward(std::min(stream->deadline_, now + limits_.quiet_busy));
    if (ready()) {
        send_start(stream);
    }
    return {};
}

void link_core::send_start(const stream_ptr& stream) {
    if (stream->number_ == 0) {
        while (next_number_ == 0 || by_number_.contains(next_number_)) {
            ++next_number_;
        }
        stream->number_ = next_number_++;
        by_number_.emplace(stream->number_, stream);
        set_stream(stream->start_frame_, stream->number_);
    }
    stream->phase_ = phase::sent;
    stream->confirmed_ = true;
    stream->in_sent_ = stream->in_acknowledged_;
    control_.append(stream->start_frame_);
    urgent_ = true;
    queue_in(stream);
}

void link_core::send_credit(link_stream& stream, protocol::channel which) {
    auto& output = stream.outputs_[which == protocol::channel::err ? 1 : 0];
    output.credited = output.received;
    protocol::append_credit(control_, stream.number_, which, output.credited);
    urgent_ = true;
}

/// Rides along with the next frame: an agent can wait for it, and a write of its own costs as much as a
/// start.
void link_core::send_forget(const link_stream& stream) {
    protocol::append_empty(control_, protocol::frame_type::forget, stream.number_);
    if (++forgets_waiting_ >= forgets_at_most) {
        urgent_ = true;
    } else if (forgets_waiting_ == 1) {
        forget_due_ = now_ + limits_.forget_within;
        bring_forward(forget_due_);
    }
}

bool link_core::stop(const run_id_bytes& id) {
    const auto found = by_id_.find(id);
    if (found == by_id_.end()) {
        return false;
    }
    const auto stream = found->second;
    stream->stop_wanted_ = true;
    if (stream->phase_ == phase::waiting) {
        // It never reached the agent and never will.
        drop(stream);
        stream->on_end(end_record::before_start());
    } else if (ready()) {
        protocol::append_empty(control_, protocol::frame_type::stop, stream->number_);
        urgent_ = true;
    }
    return true;
}

void link_core::signal(link_stream& stream, std::uint32_t number) {
    if (ready() && stream.number_ != 0) {
        protocol::append_signal(control_, stream.number_, number);
        urgent_ = true;
    }
}

void link_core::resize(link_stream& stream, std::uint16_t rows, std::uint16_t columns) {
    stream.size_.emplace(rows, columns);
    if (ready() && stream.number_ != 0) {
        protocol::append_resize(control_, stream.number_, rows, columns);
        urgent_ = true;
    }
}

std::size_t link_core::write_in(link_stream& stream, std::string_view bytes) {
    if (stream.in_ended_) {
        return 0;
    }
    const auto room = protocol::window - stream.in_buffer_.size();
    const auto taken = bytes.substr(0, room);
    stream.in_buffer_.append(taken);
    stream.in_was_full_ = taken.size() < bytes.size();
    if (const auto known = find(stream.number_)) {
        queue_in(known);
    }
    return taken.size();
}

void link_core::end_in(link_stream& stream) {
    stream.in_ended_ = true;
    if (const auto known = find(stream.number_)) {
        queue_in(known);
    }
}

void link_core::queue_in(const stream_ptr& stream) {
    const bool more = stream->in_sent_ - stream->in_acknowledged_ < stream->in_buffer_.size() ||
                      (stream->in_ended_ && !stream->in_end_sent_);
    if (ready() && more && !stream->in_queued_) {
        stream->in_queued_ = true;
        with_input_.push_back(stream);
    }
}

void link_core::abandon(link_stream& stream) {
    const auto found = by_id_.find(stream.id());
    if (found == by_id_.end() || found->second.get() != &stream || stream.phase_ == phase::forgotten) {
        return;
    }
    const auto kept = found->second;
    if (kept->phase_ == phase::waiting) {
        drop(kept);
        return;
    }
    kept->phase_ = phase::forgotten;
    kept->in_buffer_.clear();
    kept->in_acknowledged_ = kept->in_sent_;
    if (ready()) {
        protocol::append_empty(control_, protocol::frame_type::forget, kept->number_);
        urgent_ = true;
    }
}

void link_core::shutdown() {
    if (ready()) {
        protocol::append_empty(control_, protocol::frame_type::shutdown, 0);
        urgent_ = true;
    }
}

void link_core::fail_all(const std::string& why) {
    failed_ = true;
    for (const auto& stream : all()) {
        if (!holds(stream)) {
            continue;
        }
        const auto was = stream->phase_;
        drop(stream);
        if (was != phase::forgotten) {
            stream->on_failed(gone(why, was != phase::waiting));
        }
    }
}

void link_core::drop(const stream_ptr& stream) {
    if (stream->number_ != 0) {
        by_number_.erase(stream->number_);
    }
    by_id_.erase(stream->id());
    if (stream->found_) {
        watcher_.on_found({stream->id(), stream->found_since_, true});
    }
    watcher_.on_gone(stream->id());
}

link_core::stream_ptr link_core::find(std::uint32_t number) const {
    const auto found = by_number_.find(number);
    return found == by_number_.end() ? nullptr : found->second;
}

bool link_core::holds(const stream_ptr& stream) const {
    const auto found = by_id_.find(stream->id());
    return found != by_id_.end() && found->second == stream;
}

std::vector<link_core::stream_ptr> link_core::all() const {
    std::vector<stream_ptr> out;
    out.reserve(by_id_.size());
    for (const auto& [id, stream] : by_id_) {
        out.push_back(stream);
    }
    return out;
}

} // namespace sandboxd::sandboxes
