#pragma once

#include "agent/command.hpp"
#include "agent/deadlines.hpp"
#include "agent/descriptor.hpp"
#include "agent/file_helper.hpp"
#include "agent/input_channel.hpp"
#include "agent/outbox.hpp"
#include "agent/output_channel.hpp"

#include <sys/types.h>

#include <memory>

namespace sandboxd::agent {

/// What a stream that is a file operation has besides.
struct file_work {
    protocol::file_operation operation{};
    file_user whose;
    std::string order;        ///< its `start`, until a helper has it
    std::uint32_t helper = 0; ///< who works on it; 0: it waits, or is over
    bool aborted = false;     ///< the rest of its input will not come
    bool input_over = false;  ///< and the helper was told so, or that it has all

    /// It may take long: a search.
    [[nodiscard]] bool slow() const {
        return operation == protocol::file_operation::glob || operation == protocol::file_operation::grep;
    }
    [[nodiscard]] bool changes() const {
        return operation == protocol::file_operation::write || operation == protocol::file_operation::edit;
    }
};

/// One command or file operation: its channels, how far it has come, how it ended. It decides when the end
/// may be told; reading, writing and killing is the agent's.
class stream final : public turn_source {
public:
    /// After a command's own process has ended, whoever else holds its pipes open gets this long.
    static constexpr instant drain_grace = 100 * millisecond;

    struct pipe {
        descriptor fd;
        /// The command's end, held until its own process has ended: else the end of the pipe would wake the
        /// agent a moment before the end of the command does.
        descriptor command_end;
        bool watched = false;
        std::size_t owed = 0; ///< was in the pipe when the command's own process ended
    };

    stream(std::uint32_t stream_number, const start_options& options, instant at, std::uint64_t unix_us);

    [[nodiscard]] bool take_turn(std::string& out) override;

    /// So many bytes were read from a pipe (into the space given by output.prepare(), or dropped). True when
    /// that broke the limit for the first time: the tree has to be stopped.
    [[nodiscard]] bool arrived(std::size_t which, std::size_t count, bool into_ring);

    /// The command's own process has ended: by itself, or after stop_cause was set.
    void exited(int status, instant at);
    /// The limit was passed by what the pipe still held when the command had ended by itself: that counts as
    /// the limit all the same, so that the answer doesn't depend on who was faster.
    void over_limit();
    /// It never ran.
    void never_started(protocol::failure_kind failure, std::uint32_t exit_code, int os_errno,
                       std::string_view text);
    /// Its supervisor is gone.
    void lost(instant at);

    /// Of a file operation: a helper has answered, or nobody will (`cause` says why).
    void answered(const file_answer& answer, std::string_view text, instant at);
    void broken_off(protocol::end_cause cause, instant at);

    /// Whether all is over that `end` has to wait for.
    [[nodiscard]] bool complete(instant at) const;
    /// From now on `end` may be told: after all data.
    void finish();

    /// Drops its output, whatever comes.
    void forget();
    /// A new channel begins: nothing is sent until the host has answered stream_state.
    void detach();

    void append_state(std::string& out) const;

    const std::uint32_t number;
    std::string run_id;
    protocol::start_mode mode;
    bool with_input = false;
    std::uint64_t limit;
    std::uint32_t grace_ms;
    instant started_at;
    std::uint64_t started_unix_us;
    instant timeout_at = 0;  ///< 0: none
    instant drained_at = 0;  ///< end of the grace, once the process has ended
    instant backstop_at = 0; ///< when the agent itself takes over a stop

    pipe in;
    pipe pipes[2];
    output_channel outputs[2];
    input_channel input;

    std::unique_ptr<file_work> file; ///< set: it is no command
    std::uint32_t worker = 0;        ///< its supervisor, 0 when it has none (any more)
    pid_t pid = 0;
    bool running = true;    ///< its own process may still run
    bool tree_gone = false; ///< nothing is left below its supervisor
    bool ended = false;     ///< finish() was called
    bool end_sent = false;  ///< over the present channel
    bool forgotten = false;
    bool attached = true;             ///< the present channel knows it
    protocol::end_cause stop_cause{}; ///< why it was stopped; 0: it was not

private:
    void append_end(std::string& out) const;
    void append_answer(protocol::frame_writer& frame) const;

    std::uint64_t read_ = 0;
    bool last_was_out_ = false;
    protocol::end_cause cause_{};
    int status_ = -1;
    std::uint64_t duration_us_ = 0;
    protocol::failure_kind failure_{};
    std::uint32_t failure_code_ = 0;
    int os_errno_ = 0;
    std::uint32_t marks_ = 0;
    std::uint64_t length_ = 0;
    std::string text_;
};

} // namespace sandboxd::agent
