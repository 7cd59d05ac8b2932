#pragma once

#include "agent/connection.hpp"
#include "agent/file_helper.hpp"
#include "agent/process_tree.hpp"
#include "agent/run_ids.hpp"
#include "agent/stream.hpp"
#include "agent/supervisor.hpp"

#include <deque>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

namespace sandboxd::agent {

struct agent_options {
    /// `relayed`: only by way of the bridge.
    enum class transport { listen, standard_streams, dial, relayed };
    transport how = transport::listen;
    int listen_fd = -1;
    const char* dial_path = nullptr;
    /// Name of the socket that `sandboxd-agent bridge NAME` connects to, or its descriptor; see bridge.hpp.
    const char* bridge_name = nullptr;
    int bridge_fd = -1;
    char** entrypoint =
        nullptr; ///< arguments of the image's own entrypoint, run once; ends in a null pointer
};

/// The program: one thread, one epoll loop that never blocks. Owns everything.
class agent {
public:
    explicit agent(const agent_options& options);
    ~agent();
    agent(const agent&) = delete;
    agent& operator=(const agent&) = delete;

    /// Serves until it is told to leave. Returns the exit status.
    [[nodiscard]] int run();

private:
    /// What an epoll event belongs to: the kind in the upper half, a number in the lower.
    enum class source : std::uint32_t {
        signals,
        listener,
        bridge,
        connection,
        worker,
        input,
        output,
        error,
        drain,
        helper
    };

    /// A supervisor process.
    struct worker {
        std::uint32_t id = 0;
        pid_t pid = 0;
        descriptor socket;
        std::uint32_t stream = 0; ///< whose command it runs or ran last; 0: none
        bool busy = false;
        bool only_run = false; ///< it got no order since the last command
        instant idle_since = 0;
    };

    /// A file helper process.
    struct helper {
        std::uint32_t id = 0;
        pid_t pid = 0;
        descriptor socket;
        file_user whose;
        std::uint32_t stream = 0; ///< whose operation it works on; 0: none
        instant idle_since = 0;
        bool paused = false;      ///< not read: there is no room for more output
        bool wants_write = false; ///< epoll tells when it takes more input
    };
    /// The operations of one kind, quick ones or searches, that wait for a helper, and how many have one.
    struct operation_class {
        std::size_t most = 0;
        std::size_t running = 0;
        std::deque<std::uint32_t> waiting;
    };

    using stream_map = std::unordered_map<std::uint32_t, std::unique_ptr<stream>>;

    // agent.cpp: the loop, signals, deadlines.
    [[nodiscard]] bool prepare();
    void handle(std::uint64_t token);
    void on_signals();
    void on_deadline(const deadline& due);
    [[nodiscard]] bool stale(const deadline& entry) const;
    void tidy();
    void plan_tidy();
    void begin_leaving();
    void leave_round();
    bool watch(int fd, source kind, std::uint32_t id, std::uint32_t events);
    void change_watch(int fd, source kind, std::uint32_t id, std::uint32_t events);
    void unwatch(int fd);

    // agent_channel.cpp: connections and their bytes.
    void accept_connection();
    void accept_bridge();
    void admit(descriptor peer);
    void dial();
    void on_connection(std::uint32_t id);
    void read_frames(connection& from);
    void drop_connection(std::uint32_t id);
    void check_stalled(connection& one);
    void seek_hello(connection& one, std::string_view bytes);
    void update_interest(connection& one);
    void flush();

    // agent_frames.cpp: what the host asks for.
    [[nodiscard]] bool on_frame(connection& from, const protocol::frame_view& frame);
    [[nodiscard]] bool on_hello(connection& from, std::string_view payload);
    [[nodiscard]] bool on_stream_frame(stream& target, const protocol::frame_view& frame);
    [[nodiscard]] bool on_resume(stream& target, std::string_view payload);
    void attach();

    // agent_streams.cpp: the life of a stream.
    [[nodiscard]] bool start(std::uint32_t number, std::string_view payload);
    [[nodiscard]] bool open_channels(stream& target, const start_options& options, order& head,
                                     descriptor& input_end);
    void refuse(stream& target, protocol::failure_kind kind, int os_errno, std::string_view text);
    void stop(stream& target, protocol::end_cause cause);
    void read_pipe(std::uint32_t number, std::size_t which);
    void read_pipe(stream& target, std::size_t which);
    void watch_pipe(stream& target, std::size_t which);
    void close_pipe(stream& target, std::size_t which);
    void write_input(stream& target);
    void close_input(stream& target);
    void settle(stream& target);
    void advance(stream& target);
    void detach_pipes(stream& target);
    void drain(std::uint32_t id);
    void send(stream& target);
    [[nodiscard]] stream* find(std::uint32_t number);
    void erase(std::uint32_t number);

    // agent_workers.cpp: supervisors.
    [[nodiscard]] worker* take_worker();
    [[nodiscard]] worker* fork_worker();
    [[nodiscard]] bool give(worker& to, const order& head, std::string_view payload,
                            std::span<const int> files);
    void order_worker(std::uint32_t id, order_kind kind, std::uint32_t value);
    void on_worker(std::uint32_t id);
    void on_report(worker& from, const report& head, std::string_view text);
    void release_worker(worker& from);
    void lose_worker(std::uint32_t id, bool unread = false);
    void retire_workers(instant idle_before, std::size_t keep);
    void reap();
    void take_over(stream& target);
    void orphan_round();
    [[nodiscard]] std::vector<pid_t> worker_pids() const;
    void run_entrypoint();

    // agent_files.cpp: file operations and their helpers.
    void start_operation(stream& target, const start_options& options, std::string_view payload);
    void begin_operation(stream& target);
    void run_waiting();
    void stop_operation(stream& target, protocol::end_cause cause);
    void abandon_operation(stream& target);
    void feed_helper(stream& target);
    [[nodiscard]] helper* take_helper(const file_user& whose);
    [[nodiscard]] helper* fork_helper(const file_user& whose);
    [[nodiscard]] bool send_order(helper& to, file_order_kind kind, std::string_view bytes);
    void on_helper(std::uint32_t id);
    void on_file_report(helper& from, std::string_view packet);
    void end_operation(stream& target);
    void watch_helper(helper& one);
    void lose_helper(std::uint32_t id, bool unread);
    void retire_helpers(instant idle_before);
    [[nodiscard]] operation_class& class_of(const stream& target);

    agent_options options_;
    descriptor epoll_;
    descriptor signals_;
    descriptor listener_;
    descriptor bridge_;
    descriptor null_;
    char boot_id_[16] = {};
    bool reset_oom_score_ = false;
    bool own_home_ = false;
    std::uint64_t open_files_ = 0;
    instant now_ = 0;
    deadlines deadlines_;
    bool tidy_planned_ = false;
    instant redial_pause_ = 0;

    std::unordered_map<std::uint32_t, std::unique_ptr<connection>> connections_;
    std::uint32_t next_connection_ = 1;
    connection* active_ = nullptr; ///< the one that said hello last
    outbox outbox_;

    stream_map streams_;
    run_ids run_ids_;
    std::vector<std::uint32_t> finished_; ///< forgotten streams to erase once their end is out
    std::unordered_map<std::uint32_t, descriptor> drains_;
    std::uint32_t next_drain_ = 1;

    std::unordered_map<std::uint32_t, worker> workers_;
    std::vector<std::uint32_t> idle_; ///< used from the back
    std::uint32_t next_worker_ = 1;
    instant last_start_ = 0;

    std::unordered_map<std::uint32_t, helper> helpers_;
    std::uint32_t next_helper_ = 1;
    descriptor locks_; ///< file_helper_setup::locks
    operation_class quick_{.most = 8, .running = 0, .waiting = {}};
    operation_class searches_{.most = 4, .running = 0, .waiting = {}};
    bool orphans_planned_ = false;
    int orphan_rounds_ = 0;

    bool leaving_ = false;
    instant leave_by_ = 0;
    tree_signaller leave_signaller_;
    bool left_ = false;
};

} // namespace sandboxd::agent
