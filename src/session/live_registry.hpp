#pragma once

#include "core/event.hpp"
#include "core/gate.hpp"
#include "session/admission.hpp"
#include "session/command_queue.hpp"
#include "session/registry.hpp"
#include "session/session.hpp"
#include "session/shards.hpp"
#include "session/tombstones.hpp"

#include <boost/asio/strand.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace sandboxd::session {

/// The registry of the service. Its parts: open.cpp, close.cpp, sandboxes.cpp (building, healing, stopping),
/// commands.cpp, queries.cpp, start.cpp, flush.cpp.
class live_registry final : public registry, public native_files {
public:
    explicit live_registry(environment on);
    ~live_registry() override;

    task<result<start_report>> start() override;
    task<void> shutdown(shutdown_mode mode, std::chrono::steady_clock::duration limit) override;
    bool is_service(std::string_view header) const override;
    auth::scope authorize(std::string_view header, std::string_view id) const override;
    task<result<opened>> open(open_request request) override;
    void undelivered(const opened& answer) override;
    task<result<session_info>> inspect(std::string id, bool usage) override;
    task<listing> list(bool usage) override;
    result<event_page> events(std::string_view id, std::int64_t after) const override;
    task<result<void>> close(std::string id, bool purge) override;
    task<result<exec_answer>> exec(std::string id, exec_command command,
                                   std::shared_ptr<client_watch> watch) override;
    task<result<run_answer>> run(std::string id, run_command command,
                                 std::shared_ptr<client_watch> watch) override;
    task<result<void>> stop_run(std::string id, std::string run_id) override;
    native_files& host_files() override { return *this; }
    archive& workspaces() override { return *archive_; }
    result<host_door> door_of(std::string_view id) const override;
    task<result<native_outcome>> native(std::string id, native_call call) override;
    health health_numbers() const override;
    std::shared_ptr<const settings> policy() const override { return policy_; }

private:
    using time_point = std::chrono::steady_clock::time_point;

    /// What an open is going to be, once its request has been checked.
    struct plan {
        std::string id;
        bool generated = false;
        std::string alias;
        std::string entry;
    };
    struct built {
        slot_record slot;
        std::shared_ptr<sandbox> box;
    };
    /// How a command came to its answer.
    enum class fate { answered, late, overdue, stopped, left, closed };
    template <class T>
    struct ran {
        fate how = fate::answered;
        result<T> answer = error{};
        bool reached = false; ///< a sandbox was asked
    };
    template <class T>
    using operation = std::function<task<result<T>>(sandbox& box, std::chrono::milliseconds left)>;
    /// The times of one command.
    struct window {
        time_point arrived;
        time_point deadline; ///< its own
        time_point give_up;  ///< nothing is waited for beyond
    };

    // open.cpp
    result<plan> plan_open(const open_request& request) const;
    /// Nothing while the session is being closed.
    std::optional<result<opened>> open_existing(const session_ptr& there, const open_request& request) const;
    task<result<void>> may_attach(std::string id);
    session_ptr make_session(const plan& wanted, const open_request& request);
    task<result<opened>> launch(session_ptr fresh, bool generated);
    task<void> life_of_open(session_ptr fresh);
    task<result<void>> bring_up(session_ptr fresh);
    void fail_open(const session_ptr& fresh, error why);
    opened answer_for(const session_ptr& one, bool created, bool generated) const;
    void abandon(const session_ptr& fresh);

    // close.cpp
    std::shared_ptr<job> begin_close(const session_ptr& one, bool purge);
    task<void> life_of_close(session_ptr one, bool purge, std::shared_ptr<job> closing);
    task<result<void>> commit_close(session_ptr one, bool purge);
    task<void> take_down(session_ptr one, bool purge);
    task<void> purge_workspace(store::tombstone stone);
    static void end_commands(const session_ptr& one);
    task<void> close_all(std::chrono::steady_clock::duration limit);

    // sandboxes.cpp
    task<result<built>> build(session_ptr one);
    task<result<built>> build_in_slot(session_ptr one, sandbox_spec spec);
    task<bool> discard(slot_record slot);
    task<bool> stop_box(std::shared_ptr<sandbox> box, std::optional<slot_record> slot, bool purge);
    task<void> run_stop(std::shared_ptr<sandbox> box, bool purge, std::shared_ptr<core::shared_event> done);
    task<void> outlast(std::optional<slot_record> slot, std::shared_ptr<core::shared_event> done);
    void watch_death(const session_ptr& one);
    task<result<std::shared_ptr<sandbox>>> obtain(session_ptr one, std::shared_ptr<ticket> mine, bool for_run,
                                                  time_point until);
    task<void> life_of_heal(session_ptr one, std::shared_ptr<job> healing);
    task<result<void>> replace_box(session_ptr one);

    // commands.cpp
    window window_of(std::optional<double> seconds) const;
    exec_answer show_exec(const session& one, ran<exec_result> how, const window& times) const;
    result<run_answer> show_run(const session& one, ran<run_result> how, const window& times) const;
    task<fate> wait_turn(const command_queue::place& place, std::shared_ptr<ticket> mine,
                         std::shared_ptr<client_watch> watch, time_point deadline);
    template <class T>
    task<ran<T>> attempt(session_ptr one, std::shared_ptr<ticket> mine, std::shared_ptr<client_watch> watch,
                         window times, bool for_run, operation<T> what);
    void stop_behind(const std::shared_ptr<sandbox>& box, const std::string& run_id);
    void record(const session_ptr& one, std::string_view op, std::string_view target, bool ok,
                std::string_view detail, time_point began);

    // native_files.cpp
    host_door door_of(const session& one) const;
    task<void> try_door(session_ptr one, std::shared_ptr<sandbox> box, std::optional<std::uint32_t> uid);
    task<native_outcome> through_host_door(session_ptr one, native_call call, time_point until);

    // queries.cpp
    session_ptr find_listed(std::string_view id) const;
    task<std::optional<usage_sample>> sample(session_ptr one);
    struct samples;
    task<void> sample_into(session_ptr one, std::shared_ptr<samples> out, std::size_t at);

    // start.cpp
    struct adoption;
    task<void> adopt_some(std::shared_ptr<adoption> work);
    [[nodiscard]] task<void> count_inherited(std::shared_ptr<sandbox> box);
    task<result<std::size_t>> remove_strays(const store::contents& kept);
    void restore_tombstones(const store::contents& kept);

    // flush.cpp
    void mark_dirty(const session_ptr& one);
    task<void> life_of_flusher();
    task<void> flush();
    store::change prune_now();
    task<void> prune();
    task<void> settle();

    static error no_such(std::string_view id);
    static error leaving();

    environment on_;
    std::shared_ptr<const settings> policy_;
    std::atomic<bool> stopping_{false};
    std::atomic<std::int64_t> next_order_{1};
    std::atomic<std::uint64_t> next_native_call_{1};
    std::atomic<std::int64_t> quarantined_{0};
    shards shards_;
    admission admission_;
    tombstones tombstones_;
    command_queue queue_;
    /// Opens and closes under way, healing, the flusher: shutdown waits for them.
    core::gate requests_;
    core::gate lives_;
    core::gate flusher_;
    /// Calls to sandboxes that may never answer. Not a member but a heap object, since a frozen sandbox can
    /// keep its calls beyond the registry's own end.
    std::unique_ptr<core::gate> calls_ = std::make_unique<core::gate>();

    boost::asio::strand<boost::asio::io_context::executor_type> flush_strand_;
    std::shared_ptr<core::event> flush_now_; ///< on flush_strand_
    std::atomic<bool> flush_asked_{false};
    std::mutex dirty_mutex_;
    std::vector<session_ptr> dirty_;
    time_point last_prune_{};
    std::unique_ptr<archive> archive_;
};

} // namespace sandboxd::session
