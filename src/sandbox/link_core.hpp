#pragma once

// The host's side of the protocol without I/O and without a clock: bytes and times in, bytes and calls of
// stream owners out. agent_link wraps it with a strand, a socket and a timer. Not thread-safe.
//
// Everything that comes in is untrusted. The first frame that breaks a rule makes receive() answer with the
// rule it broke; the caller then cuts the channel and opens a new one. Nothing that an agent sends can make
// the core hold more than a fixed amount for it: output goes to the owners at once, within the windows that
// were granted; what is sent back (pong, credit) is bounded by congested().

#include "protocol/handshake.hpp"
#include "sandbox/link_stream.hpp"

#include <boost/unordered/unordered_flat_map.hpp>

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

namespace sandboxd::sandboxes {

struct link_limits {
    std::size_t streams = 1024;                    ///< at once, forgotten ones included
    std::uint64_t garbage = 16 * 1024 * 1024;      ///< bytes before `welcome`
    std::chrono::milliseconds quiet_busy{10'000};  ///< silence before a ping while commands run
    std::chrono::milliseconds quiet_idle{60'000};  ///< and while none does
    std::chrono::milliseconds pong_within{10'000}; ///< a channel that answers later is dead
    std::chrono::milliseconds stop_within{30'000}; ///< a command given up on has to be gone by then
    std::chrono::milliseconds forget_within{100};  ///< ends are acknowledged in groups, at most so late
};

/// A command from before this link, found running on its agent ("Decided" 21).
struct found_command {
    run_id_bytes id{};
    std::uint64_t started_unix_us = 0;
    bool ended = false; ///< told at its end
};

class link_core {
public:
    using time_point = std::chrono::steady_clock::time_point;

    /// Told about every stream's end, besides its owner.
    class observer {
    public:
        virtual ~observer() = default;
        /// One was taken over, or one that was has ended.
        virtual void on_found(const found_command& command) = 0;
        /// The run id is free again; called before the owner hears of the end.
        virtual void on_gone(const run_id_bytes& id) = 0;
    };

    /// `watcher` outlives the core.
    link_core(link_limits limits, observer& watcher);

    // The channel.

    /// A new channel is there: `hello` lies in the output.
    void open(const protocol::nonce_bytes& nonce, time_point now);
    /// It is gone; commands go on.
    void cut();
    /// Bytes from the agent. The rule that was broken, when one was: cut the channel then.
    [[nodiscard]] std::optional<std::string_view> receive(std::string_view bytes, time_point now);
    /// Appends what is to be sent now, control frames before data. Empty: nothing.
    void take_output(std::string& out);
    /// Something is to be sent that can't wait; the rest rides along, at the latest when tick() says so.
    [[nodiscard]] bool urgent() const noexcept { return urgent_ || !with_input_.empty(); }
    /// The other side does not take what we send: read no more from it for now.
    [[nodiscard]] bool congested() const noexcept { return control_.size() > congestion; }
    /// `ready` has arrived on this channel.
    [[nodiscard]] bool ready() const noexcept { return state_ == state::ready; }

    // Time.

    /// tick() has something to do then. Any call may bring it forward.
    [[nodiscard]] time_point due() const noexcept { return due_; }
    enum class verdict : std::uint8_t {
        well,
        dead,  ///< the channel does not answer: cut it
        stuck, ///< a command could not be stopped: the sandbox is beyond help
    };
    [[nodiscard]] verdict tick(time_point now);

    // Streams.

    /// Takes a stream over. On failure (errc::exists, unavailable) it was not taken and not called.
    [[nodiscard]] result<void> start(std::shared_ptr<link_stream> stream, time_point now);
    /// Asks the agent to stop the tree; false when no such command is known.
    bool stop(const run_id_bytes& id);
    [[nodiscard]] bool knows(const run_id_bytes& id) const { return by_id_.contains(id); }
    /// Sent at most once: lost when the channel is cut just then.
    void signal(link_stream& stream, std::uint32_t number);
    void resize(link_stream& stream, std::uint16_t rows, std::uint16_t columns);
    /// Takes as many bytes as fit into the window; fewer than given: wait for on_writable().
    [[nodiscard]] std::size_t write_in(link_stream& stream, std::string_view bytes);
    void end_in(link_stream& stream);
    /// Nobody waits for it any more: it is called no more, its output is dropped, it runs on.
    void abandon(link_stream& stream);
    /// Asks the agent to stop everything and leave.
    void shutdown();
    /// Ends every stream with on_failed(); no more is accepted.
    void fail_all(const std::string& why);

    [[nodiscard]] std::size_t running() const noexcept { return by_id_.size(); }

private:
    static constexpr std::size_t congestion = 1024 * 1024;

    using stream_ptr = std::shared_ptr<link_stream>;
    using phase = link_stream::phase;
    using lie = std::optional<std::string_view>;
    enum class state : std::uint8_t { closed, greeting, listing, ready };
    struct id_hash {
        std::size_t operator()(const run_id_bytes& id) const noexcept;
    };

    [[nodiscard]] lie receive_frames(std::string_view bytes);
    [[nodiscard]] lie on_frame(const protocol::frame_view& frame);
    [[nodiscard]] lie on_channel_frame(const protocol::frame_view& frame);
    [[nodiscard]] lie on_ping(std::string_view payload);
    [[nodiscard]] lie on_ready();
    [[nodiscard]] lie settle(const stream_ptr& stream);
    [[nodiscard]] lie on_stream_state(const protocol::frame_view& frame);
    [[nodiscard]] lie on_started(link_stream& stream, std::string_view payload);
    [[nodiscard]] lie on_data(link_stream& stream, protocol::channel which, std::string_view payload);
    [[nodiscard]] lie on_credit(link_stream& stream, protocol::channel which, std::string_view payload);
    [[nodiscard]] lie on_end_of_data(link_stream& stream, protocol::channel which);
    [[nodiscard]] lie on_end(const stream_ptr& stream, std::string_view payload);

    struct told_state;
    [[nodiscard]] lie take_back(const stream_ptr& stream, const told_state& told);
    [[nodiscard]] lie take_over(std::uint32_t number, const told_state& told);

    void send_start(const stream_ptr& stream);
    void send_credit(link_stream& stream, protocol::channel which);
    void send_forget(const link_stream& stream);
    void heard(link_stream& stream);
    void queue_in(const stream_ptr& stream);
    void take_data(std::string& out);
    bool take_data_of(link_stream& stream, std::string& out);
    void drop(const stream_ptr& stream);
    [[nodiscard]] verdict check_deadlines(time_point now);
    [[nodiscard]] verdict check_silence(time_point now);
    void give_up(const stream_ptr& stream, time_point now);
    [[nodiscard]] stream_ptr find(std::uint32_t number) const;
    [[nodiscard]] bool holds(const stream_ptr& stream) const;
    [[nodiscard]] std::vector<stream_ptr> all() const;
    void bring_forward(time_point when) noexcept { due_ = std::min(due_, when); }

    link_limits limits_;
    observer& watcher_;

    state state_ = state::closed;
    std::optional<protocol::welcome_finder> finder_;
    protocol::frame_parser parser_{protocol::sender::agent};
    std::optional<protocol::nonce_bytes> boot_id_;
    std::string control_;
    bool urgent_ = false;
    bool failed_ = false;     ///< fail_all() was called
    bool pong_waits_ = false; ///< in control_: one is enough, an agent has no reason to ask twice

    boost::unordered_flat_map<std::uint32_t, stream_ptr> by_number_;
    boost::unordered_flat_map<run_id_bytes, stream_ptr, id_hash> by_id_;
    std::deque<stream_ptr> with_input_; ///< streams with stdin to send, in turn; empty unless ready
    std::uint32_t next_number_ = 1;

    time_point now_{}; ///< of the call in progress
    time_point due_ = time_point::max();
    time_point last_heard_{};
    std::optional<time_point> pinged_;
    std::uint64_t ping_count_ = 0;
    std::size_t forgets_waiting_ = 0;
    time_point forget_due_ = time_point::max();
};

} // namespace sandboxd::sandboxes
