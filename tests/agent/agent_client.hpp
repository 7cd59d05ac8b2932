#pragma once

// The shipped agent as an ordinary process, and a host's side of its channel, with deadlines on everything.

#include "protocol/handshake.hpp"

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace sandboxd::agent::test {

/// Runs `sandboxd-agent serve --listen-fd 3` on a socket of its own, below this test. At the end it is told
/// to leave; it is an error of the test if anything stays behind.
class agent_process {
public:
    enum class owner { as_is, nobody }; ///< nobody: where the test is root, a user without any right

    explicit agent_process(std::vector<std::string> more = {}, std::vector<std::string> environment = {},
                           owner whose = owner::as_is);
    ~agent_process();
    agent_process(const agent_process&) = delete;
    agent_process& operator=(const agent_process&) = delete;

    /// A new connection.
    [[nodiscard]] int connect() const;
    [[nodiscard]] pid_t pid() const { return pid_; }
    [[nodiscard]] bool alive() const;

    /// Processes below it that are neither zombies nor its supervisors.
    [[nodiscard]] std::vector<pid_t> commands() const;
    [[nodiscard]] std::vector<pid_t> supervisors() const;
    /// Waits until commands() has so many; false after a minute.
    [[nodiscard]] bool wait_for_commands(std::size_t count) const;
    /// Waits until no process below it has ended without having been taken; false after a minute.
    [[nodiscard]] bool wait_until_reaped() const;

private:
    std::string name_;
    pid_t pid_ = -1;
};

/// What a `start` carries.
class start {
public:
    explicit start(std::initializer_list<std::string> arguments);
    [[nodiscard]] static start script(std::string text);

    start& with(const std::function<void(protocol::frame_writer&)>& add);
    start& mode(protocol::start_mode value);
    start& timeout(std::uint64_t ms);
    start& grace(std::uint32_t ms);
    start& run_id(char fill);
    start& open_stdin();
    start& variable(std::string text);
    start& directory(std::string text);

    [[nodiscard]] std::string frame(std::uint32_t stream) const;

private:
    start() = default;
    std::vector<std::function<void(protocol::frame_writer&)>> fields_;
};

/// What is known of a stream.
struct outcome {
    std::string out;
    std::string err;
    std::uint64_t out_received = 0;
    std::uint64_t err_received = 0;
    std::optional<std::uint32_t> pid;
    bool ended = false;
    protocol::end_cause cause{};
    protocol::failure_kind failure{};
    std::optional<std::uint32_t> exit_code;
    std::optional<std::uint32_t> exit_signal;
    std::uint64_t out_total = 0;
    std::uint64_t err_total = 0;
    std::uint64_t dropped = 0;
    std::uint64_t duration_us = 0;
    std::string text;
    std::uint64_t stdin_credit = 0;
};

struct held_stream {
    std::string run_id;
    std::uint64_t out_offset = 0;
    std::uint64_t err_offset = 0;
    std::uint64_t in_offset = 0;
    bool ended = false;
};

/// The host's side. Acknowledges output as it comes unless told not to.
class client {
public:
    explicit client(const agent_process& agent);
    ~client();
    client(const client&) = delete;
    client& operator=(const client&) = delete;

    /// Starts a command; its number.
    std::uint32_t begin(const start& command);
    /// Waits for `end` (a minute), forgets the stream and tells how it went.
    outcome finish(std::uint32_t stream);
    outcome run(const start& command) { return finish(begin(command)); }

    void send(const std::string& bytes);
    void write(std::uint32_t stream, std::string_view bytes);
    void end_input(std::uint32_t stream);
    void order(protocol::frame_type type, std::uint32_t stream);
    void resume(std::uint32_t stream, std::uint64_t out, std::uint64_t err = 0);
    void credit(std::uint32_t stream, std::uint64_t out);

    /// Handles frames until `done` says so; false after `limit`, or when the agent closed the channel.
    bool pump(const std::function<bool()>& done, std::chrono::milliseconds limit = std::chrono::seconds(60));
    [[nodiscard]] outcome& at(std::uint32_t stream) { return streams_[stream]; }
    [[nodiscard]] const std::map<std::uint32_t, held_stream>& held() const { return held_; }
    [[nodiscard]] bool closed() const { return closed_; }
    [[nodiscard]] std::uint32_t pongs() const { return pongs_; }

    bool automatic_credit = true;
    bool discard = false; ///< output is counted, not kept

private:
    void handle(const protocol::frame_view& frame);
    void handle_end(outcome& target, std::string_view payload);
    [[nodiscard]] bool receive(std::chrono::milliseconds limit);

    int fd_;
    bool closed_ = false;
    bool ready_ = false;
    std::uint32_t next_ = 1;
    std::uint32_t pongs_ = 0;
    std::string input_;
    protocol::frame_parser parser_{protocol::sender::agent};
    std::map<std::uint32_t, outcome> streams_;
    std::map<std::uint32_t, held_stream> held_;
};

/// The bytes of a file of /proc.
[[nodiscard]] std::string read_proc(pid_t pid, const char* file);

} // namespace sandboxd::agent::test
