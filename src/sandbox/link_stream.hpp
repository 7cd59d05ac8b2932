#pragma once

// One stream of an agent link, seen from its owner: a command or a file operation from its start frame to its
// end. The owner derives, hands the object to agent_link::start() and is called back on the
// link's strand. The link keeps it alive until its end.

#include "protocol/frame.hpp"
#include "sandboxd/error.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sandboxd::sandboxes {

using run_id_bytes = std::array<char, protocol::run_id_size>;

/// How a stream ended, as its agent tells it: checked for form and consistency, not for truth.
struct end_record {
    protocol::end_cause cause = protocol::end_cause::lost;
    std::optional<int> exit_code; ///< 0 to 255
    std::optional<int> signal;    ///< 1 to 64
    std::uint64_t dropped = 0;    ///< bytes of output that were produced and not sent
    std::chrono::microseconds duration{0};
    protocol::failure_kind failure = protocol::failure_kind::none;
    std::string text; ///< the agent's sentence for a failure, at most 1 KiB
    std::uint32_t os_errno = 0;
    std::uint32_t marks = 0;  ///< of a file operation: protocol::file_mark
    std::uint64_t length = 0; ///< and the number that goes with them

    /// Of a command that was stopped before it reached the agent.
    [[nodiscard]] static end_record before_start() {
        end_record out;
        out.cause = protocol::end_cause::stopped;
        return out;
    }
};

class link_stream {
public:
    /// `start_frame` as encode_start() makes it. `separate`: data may come on channel::err too.
    /// `keep_bytes`: the most the agent may send on each channel; more is a lie.
    link_stream(const run_id_bytes& id, std::string start_frame, bool separate, std::uint64_t keep_bytes)
        : id_(id), start_frame_(std::move(start_frame)), separate_(separate), keep_bytes_(keep_bytes) {}
    virtual ~link_stream() = default;
    link_stream(const link_stream&) = delete;
    link_stream& operator=(const link_stream&) = delete;

    [[nodiscard]] const run_id_bytes& id() const noexcept { return id_; }

    /// When the link gives up on it by itself: errc::timeout, the command is stopped. Set before start().
    void give_up_at(std::chrono::steady_clock::time_point when) noexcept { deadline_ = when; }

    /// The program runs. Not called when it ended before the agent could say so.
    virtual void on_started(std::uint32_t /*pid*/) {}
    /// Output, in order, each byte once, whatever became of the channel meanwhile. It is acknowledged when
    /// this returns.
    virtual void on_data(protocol::channel which, std::string_view bytes) = 0;
    /// write_in() may take bytes again.
    virtual void on_writable() {}
    /// The last call, once: the end with all data before it...
    virtual void on_end(end_record record) = 0;
    /// ...or there will be none: errc::gone (see error::may_have_started), timeout, exists, unavailable.
    virtual void on_failed(error reason) = 0;

private:
    friend class link_core;

    struct output {
        std::uint64_t received = 0;
        std::uint64_t credited = 0;
        bool ended = false;
    };
    enum class phase : std::uint8_t {
        waiting,   ///< `start` is not on its way: the agent can't know of it
        sent,      ///< `start` is on its way, nothing was heard of it
        heard,     ///< the agent has it
        forgotten, ///< nobody waits for it any more; counted until it ends
    };

    run_id_bytes id_;
    std::string start_frame_; ///< empty once the agent has it
    bool separate_;
    bool stop_wanted_ = false;
    bool given_up_ = false;
    bool found_ = false;       ///< from before this link
    bool in_ended_ = false;    ///< nothing more will be written
    bool in_end_sent_ = false; ///< and the agent was told on this channel
    bool in_queued_ = false;   ///< waits for its turn
    bool in_was_full_ = false; ///< on_writable() is owed
    bool confirmed_ = false;   ///< told by the agent on this channel
    phase phase_ = phase::waiting;
    std::uint32_t number_ = 0; ///< 0 until it is sent
    std::uint64_t found_since_ = 0;
    std::uint64_t keep_bytes_;
    std::array<output, 2> outputs_; ///< out, err
    std::string in_buffer_;         ///< not acknowledged yet
    std::uint64_t in_acknowledged_ = 0;
    std::uint64_t in_sent_ = 0;
    std::optional<std::pair<std::uint16_t, std::uint16_t>> size_; ///< the last resize, rows and columns
    std::chrono::steady_clock::time_point deadline_ = std::chrono::steady_clock::time_point::max();
};

} // namespace sandboxd::sandboxes
