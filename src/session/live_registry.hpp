#pragma once

#include "config/policy.hpp"
#include "core/event.hpp"
#include "core/gate.hpp"
#include "core/turns.hpp"
#include "session/admission.hpp"
#include "session/command_queue.hpp"
#include "session/files.hpp"
#include "session/kept_layers.hpp"
#include "session/policy_cell.hpp"
#include "session/registry.hpp"
#include "session/session.hpp"
#include "session/shards.hpp"
#include "session/text_extractor.hpp"
#include "session/tombstones.hpp"
#include "session/workspace_ages.hpp"

#include <boost/asio/strand.hpp>

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace sandboxd::session {

/// The registry of the service. Its parts: open.cpp, close.cpp, room.cpp (who makes way at a ceiling),
/// sandboxes.cpp (building and stopping), renew.cpp (healing and waking), sleep.cpp, reaper.cpp, policy.cpp,
/// commands.cpp, queries.cpp, start.cpp, adopt.cpp, flush.cpp.
class live_registry final : public registry, public file_operations, public native_files {
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
    bool has_session(std::string_view id) const override { return find_listed(id) != nullptr; }
    task<result<event_page>> events(std::string id, std::int64_t after) override;
    task<result<void>> close(std::string id, bool purge) override;
    task<result<exec_answer>> exec(std::string id, exec_command command, client_probe client) override;
    task<result<run_answer>> run(std::string id, run_command command, client_probe client) override;
    task<result<void>> stop_run(std::string id, std::string run_id) override;
    native_files& host_files() override { return *this; }
    archive& workspaces() override { return *archive_; }
    result<host_door> door_of(std::string_view id) const override;
    task<result<native_outcome>> native(std::string id, native_call call) override;
    health health_numbers() const override;
    file_operations& files() override { return *this; }
    task<result<std::string>> read(std::string id, read_command command) override;
    task<result<std::string>> read_bytes(std::string id, std::string path) override;
    task<result<write_answer>> write(std::string id, std::string path, std::string content) override;
    task<result<edit_answer>> edit(std::string id, edit_command command) override;
    task<result<bool>> exists(std::string id, std::string path) override;
    task<result<file_listing>> ls(std::string id, std::string path) override;
    task<result<file_listing>> glob(std::string id, glob_request command) override;
    task<result<grep_answer>> grep(std::string id, grep_command command) override;
    std::shared_ptr<const settings> policy() const override { return policy_.get(); }
    std::vector<std::string> policy_overrides() const override;
    task<result<void>> change_policy(policy_change change) override;
    task<result<void>> forget_policy() override;

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
        bool had_slot = false; ///< made in the slot it was given, beside what was kept there
    };
    /// What a sandbox is made in: the slot that holds what is kept of the last one, if any.
    struct place_to_build {
        std::optional<slot_record> slot;
        bool only_there = false; ///< errc::gone when nothing is kept in it (N9.2)
    };
    /// Those who make way for a sandbox that is about to be built.
    using leavers = std::vector<std::pair<session_ptr, std::shared_ptr<job>>>;
    struct way {
        leavers sleepers; ///< fall asleep
        leavers closers;  ///< are closed for good
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
    task<std::optional<result<opened>>> open_existing(session_ptr there, open_request request);
    task<result<void>> may_attach(std::string id);
    session_ptr make_session(const plan& wanted, const open_request& request);
    task<result<opened>> launch(session_ptr fresh, way cleared, bool generated);
    task<void> life_of_open(session_ptr fresh, way cleared);
    task<result<void>> bring_up(session_ptr fresh, way cleared);
    task<result<built>> build_fresh(session_ptr fresh, const std::optional<kept_layers::entry>& left);
    void fail_open(const session_ptr& fresh, error why);
    opened answer_for(const session_ptr& one, bool created, bool generated) const;
    void abandon(const session_ptr& fresh);

    // close.cpp
    std::shared_ptr<job> begin_close(const session_ptr& one, bool purge,
                                     const std::function<bool(const session&)>& only_if = {});
    bool spawn_close(const session_ptr& one, bool purge, bool was_asleep,
                     const std::shared_ptr<job>& closing);
    task<void> life_of_close(session_ptr one, bool purge, std::shared_ptr<job> closing);
    task<result<void>> commit_close(session_ptr one, bool purge);
    std::optional<store::kept_layer> layer_of(const session& one) const;
    task<void> take_down(session_ptr one, bool purge);
    task<void> purge_workspace(store::tombstone stone);
    static void end_commands(const session_ptr& one);
    task<void> close_all(std::chrono::steady_clock::duration limit);

    // sandboxes.cpp
    task<result<built>> build(session_ptr one, place_to_build where);
    task<result<built>> build_in_slot(session_ptr one, sandbox_spec spec, std::optional<slot_record> slot);
    task<bool> discard(slot_record slot);
    /// What becomes of the slot of a sandbox that is stopped: emptied, or left as it is with what is kept in
    /// it.
    enum class leaving_slot { empty, kept };
    task<bool> stop_box(std::shared_ptr<sandbox> box, std::optional<slot_record> slot, leaving_slot how);
    task<bool> undo(built made);
    task<void> run_stop(std::shared_ptr<sandbox> box, bool purge, std::shared_ptr<core::shared_event> done);
    task<void> outlast(std::optional<slot_record> slot, std::shared_ptr<core::shared_event> done);
    void watch_death(const session_ptr& one);
    [[nodiscard]] bool keeps_layers() const { return policy_->persist_containers; }

    // renew.cpp
    task<result<std::shared_ptr<sandbox>>> obtain(session_ptr one, std::shared_ptr<ticket> mine, bool for_run,
                                                  time_point until);
    result<std::shared_ptr<job>> begin_move(const session_ptr& one, bool for_run);
    task<void> life_of_renewal(session_ptr one, std::shared_ptr<job> moving, phase during, bool only_there,
                               way cleared);
    task<result<void>> renew(session_ptr one, phase during, bool only_there, way cleared);
    task<result<void>> put_in_place(session_ptr one, phase during, result<built> made);
    task<bool> find_again(session_ptr one);

    // sleep.cpp
    void spawn_sleep(const session_ptr& one, const std::shared_ptr<job>& moving);
    task<void> life_of_sleep(session_ptr one, std::shared_ptr<job> moving);
    task<result<void>> fall_asleep(session_ptr one);
    std::shared_ptr<job> begin_wake(const session_ptr& one, bool only_there);
    task<result<void>> wake_for_open(session_ptr one);

    // room.cpp
    result<way> make_room(const session_ptr& newcomer, bool is_new);
    std::vector<session_ptr> longest_idle(std::size_t count, std::chrono::seconds at_least) const;
    std::vector<session_ptr> longest_asleep(std::size_t count) const;
    std::optional<way> claim(const std::vector<session_ptr>& idle, const std::vector<session_ptr>& asleep);
    void spawn_leaving(const way& cleared);
    task<bool> wait_for(way cleared);

    // reaper.cpp
    task<void> life_of_reaper();
    void close_idle();
    void close_asleep();
    task<void> sweep();
    task<void> sweep_workspaces();
    task<void> sweep_layers();

    // policy.cpp
    task<void> load_policy(std::optional<std::string> stored);
    result<settings> with(const policy_change& file, const policy_change& put) const;
    void take_overrides(const result<std::string>& text);
    task<void> poll_overrides();

    // commands.cpp
    window window_of(std::optional<double> seconds) const;
    exec_answer show_exec(const session& one, ran<exec_result> how, const window& times) const;
    result<run_answer> show_run(const session& one, ran<run_result> how, const window& times) const;
    task<fate> wait_turn(const command_queue::place& place, std::shared_ptr<ticket> mine,
                         time_point deadline);
    static fate fate_of(const ticket& mine);
    static bool is_alive(const session& one);
    template <class T>
    task<ran<T>> attempt(session_ptr one, std::shared_ptr<ticket> mine, client_probe client, window times,
                         bool for_run, operation<T> what);
    void stop_behind(const std::shared_ptr<sandbox>& box, const std::string& run_id);
    void record(const session_ptr& one, std::string_view op, std::string_view target, bool ok,
                std::string_view detail, time_point began);

    // file_attempt.hpp, files.cpp, file_changes.cpp
    struct file_call;
    template <class T>
    struct file_outcome;
    template <class T>
    using file_operation = std::function<task<result<T>>(sandbox& box)>;
    result<void> begin(file_call& call);
    void log(const file_call& call, bool ok, std::string_view detail);
    error past_ceiling(const file_call& call);
    template <class T>
    task<file_outcome<T>> ask(file_call& call, std::shared_ptr<ticket> mine, std::shared_ptr<const void> held,
                              file_operation<T> what);
    template <class T>
    task<file_outcome<T>> look(file_call& call, file_operation<T> what);
    template <class T>
    task<file_outcome<T>> change(file_call& call, std::string path, file_operation<T> what);
    task<result<std::string>> show_file(file_call& call, const file_content& file,
                                        const read_command& command);
    std::string next_file_call();

    // native_files.cpp
    host_door door_of(const session& one) const;
    task<void> try_door(session_ptr one, std::shared_ptr<sandbox> box, std::optional<std::uint32_t> uid);
    task<host_door> ask_for_door(session_ptr one, std::shared_ptr<sandbox> box,
                                 std::optional<std::uint32_t> uid, settings now);
    task<native_outcome> through_host_door(session_ptr one, native_call call, std::shared_ptr<ticket> mine,
                                           time_point until);

    // queries.cpp
    session_ptr find_listed(std::string_view id) const;
    task<std::optional<usage_sample>> sample(session_ptr one);
    struct samples;
    task<void> sample_into(session_ptr one, std::shared_ptr<samples> out, std::size_t at);

    // start.cpp, adopt.cpp
    struct adoption;
    task<void> adopt_all(std::shared_ptr<adoption> work);
    task<void> adopt_some(std::shared_ptr<adoption> work);
    task<std::optional<result<std::shared_ptr<sandbox>>>> look_for(slot_record slot);
    void take_in(const session_ptr& one, std::shared_ptr<sandbox> box);
    task<void> look_again();
    [[nodiscard]] task<void> count_inherited(std::shared_ptr<sandbox> box);
    task<result<std::size_t>> remove_strays(const store::contents& kept);
    void restore_tombstones(const store::contents& kept);
    void restore_session(store::session_contents kept, const std::map<std::string, slot_record>& slots,
                         adoption& work);
    void restore_layers(const store::contents& kept, const std::map<std::string, slot_record>& slots,
                        adoption& work);

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
    policy_cell policy_;
    core::turns policy_turns_;
    mutable std::mutex overrides_mutex_; ///< over the next two, which change within a turn
    policy_change from_file_;            ///< what the overrides file has said so far
    policy_change from_put_;
    std::string overrides_seen_; ///< what told the file's state when it was read
    std::atomic<bool> stopping_{false};
    std::atomic<std::int64_t> next_order_{1};
    std::atomic<std::uint64_t> next_file_call_{1};
    std::atomic<std::uint64_t> next_native_call_{1};
    std::atomic<std::int64_t> quarantined_{0};
    shards shards_;
    admission admission_;
    std::mutex room_mutex_; ///< held for moments, before any session's: who makes way for whom
    kept_layers kept_;
    workspace_ages ages_; ///< the reaper's
    tombstones tombstones_;
    command_queue queue_;
    /// Opens and closes under way, healing, the flusher: shutdown waits for them.
    core::gate requests_;
    core::gate lives_;
    core::gate flusher_;
    core::gate calls_; ///< to sandboxes that may never answer, even beyond the registry's own end

    boost::asio::strand<boost::asio::io_context::executor_type> flush_strand_;
    std::shared_ptr<core::event> flush_now_; ///< on flush_strand_
    std::atomic<bool> flush_asked_{false};
    text_extractor texts_;

    std::mutex dirty_mutex_;
    std::vector<session_ptr> dirty_;
    time_point last_prune_{};
    std::shared_ptr<core::event> reap_now_; ///< on flush_strand_: set at the end
    std::unique_ptr<archive> archive_;
};

} // namespace sandboxd::session
