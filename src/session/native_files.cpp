#include "session/native_files.hpp"

#include "core/log.hpp"
#include "hostfs/blocking/files.hpp"
#include "hostfs/in_memory.hpp"
#include "hostfs/paths.hpp"
#include "session/bounded.hpp"
#include "session/door_check.hpp"
#include "session/live_registry.hpp"
#include "session/path_turn.hpp"
#include "session/place_at_work.hpp"
#include "session/read_limit.hpp"
#include "session/refusals.hpp"
#include "session/registered.hpp"
#include "session/workspace.hpp"

#include <cerrno>
#include <unistd.h>
#include <utility>

namespace sandboxd::session {

namespace {

namespace host = hostfs::blocking;

/// Below the client's 30 s (contract N16.27).
constexpr std::chrono::seconds time_allowed{25};

/// One operation as a worker gets it.
struct native_job {
    native_op op;
    hostfs::native_path path;
    std::string content;
    std::string root; ///< of the workspaces
    session_ptr of;
    std::shared_ptr<ticket> mine;
    std::uint64_t max_bytes;
    hostfs::blocking::time_limit until;
};

/// The workspace; made again when somebody has removed it (N5.9, N16.9), unless that was a purge.
hostfs::native_result<hostfs::blocking::workspace> open_workspace(const native_job& job) {
    const auto& id = job.of->record.id;
    auto opened = host::workspace::open(job.root, id);
    if (!opened && opened.error().value() == ENOENT) {
        if (job.of->workspace.make(job.root, id, std::nullopt)) {
            opened = host::workspace::open(job.root, id);
        }
    }
    if (!opened) {
        return hostfs::native_failure{hostfs::refusal::ask_sandbox,
                                      "The workspace can't be opened by the service", true};
    }
    return std::move(*opened);
}

template <class T>
native_outcome as_outcome(hostfs::native_result<T> done) {
    if (!done) {
        return std::move(done.error());
    }
    native_answer out;
    if constexpr (std::is_same_v<T, std::string>) {
        out.text = std::move(*done);
    } else if constexpr (std::is_same_v<T, file_entry>) {
        out.entries.push_back(std::move(*done));
    } else if constexpr (std::is_same_v<T, std::vector<file_entry>>) {
        out.entries = std::move(*done);
    }
    return out;
}

native_outcome perform(const native_job& job) {
    if (!job.mine->start()) {
        return hostfs::native_failure{hostfs::refusal::ask_sandbox, "The session was closed"};
    }
    const auto in = open_workspace(job);
    if (!in) {
        return in.error();
    }
    switch (job.op) {
    case native_op::read:
        return as_outcome(hostfs::blocking::read(*in, job.path, job.max_bytes, job.until));
    case native_op::write:
        return as_outcome(hostfs::blocking::write(*in, job.path, job.content, job.until));
    case native_op::stat:
        return as_outcome(hostfs::blocking::stat(*in, job.path));
    case native_op::list:
        return as_outcome(hostfs::blocking::list(*in, job.path, job.until));
    case native_op::realpath:
        return as_outcome(hostfs::blocking::realpath(*in, job.path));
    case native_op::mkdir:
        return as_outcome(hostfs::blocking::mkdir(*in, job.path, job.until));
    case native_op::remove:
        return as_outcome(hostfs::blocking::remove(*in, job.path, job.until));
    }
    return hostfs::native_failure{hostfs::refusal::ask_sandbox, "An unknown operation", true};
}

/// The answer where the kernel has everything for it in memory; nothing where a disk is to be waited for.
std::optional<native_outcome> at_once(const native_job& job) {
    if (changes(job.op)) {
        return std::nullopt;
    }
    const auto found = hostfs::cached_node::find(job.root, job.of->record.id, job.path.relative);
    if (!found) {
        return std::nullopt;
    }
    switch (job.op) {
    case native_op::read:
        if (auto content = found->content(job.max_bytes)) {
            return as_outcome<std::string>(std::move(*content));
        }
        return std::nullopt;
    case native_op::stat:
        return as_outcome<file_entry>(found->entry(job.path));
    case native_op::list:
        return found->listed_lately() ? std::optional(as_outcome(found->entries(job.path))) : std::nullopt;
    case native_op::realpath:
        return as_outcome<std::string>(job.path.normalized);
    default:
        return std::nullopt;
    }
}

native_outcome perform_and_note(const native_job& job) {
    hostfs::blocking::learn_file_system(job.root);
    auto out = perform(job);
    if (out && job.op == native_op::list) {
        hostfs::blocking::note_listed(job.root, job.of->record.id, job.path.relative);
    }
    return out;
}

task<native_outcome> on_worker(core::worker_pool& workers, std::shared_ptr<const native_job> job) {
    auto work = [job] { return perform_and_note(*job); };
    co_return co_await workers.run(std::move(work));
}

hostfs::native_failure too_long() {
    return {hostfs::refusal::timeout, "The file operation took too long"};
}

/// Contract N4.6.
std::string_view detail_of(const native_outcome& out) {
    if (out) {
        return "";
    }
    switch (out.error().why) {
    case hostfs::refusal::ask_sandbox:
        return "via the sandbox";
    case hostfs::refusal::not_found:
        return "not found";
    default:
        return hostfs::exception_of(out.error().why);
    }
}

} // namespace

std::string_view name_of(native_op op) noexcept {
    switch (op) {
    case native_op::read:
        return "read";
    case native_op::write:
        return "write";
    case native_op::stat:
        return "stat";
    case native_op::list:
        return "ls";
    case native_op::realpath:
        return "realpath";
    case native_op::mkdir:
        return "mkdir";
    case native_op::remove:
        return "remove";
    }
    return "";
}

result<host_door> live_registry::door_of(std::string_view id) const {
    const auto one = find_listed(id);
    if (!one) {
        return no_such(id);
    }
    return door_of(*one);
}

host_door live_registry::door_of(const session& one) const {
    return policy()->native_files && one.record.workspace ? one.door.load() : host_door::shut;
}

/// Contract N5.8: `uid` is whom the session's runtime runs as.
task<void> live_registry::try_door(session_ptr one, std::shared_ptr<sandbox> box,
                                   std::optional<std::uint32_t> uid) {
    const auto now = policy();
    const auto before = one->door.load();
    if (!now->native_files || !one->record.workspace) {
        one->door = host_door::shut;
    } else {
        one->door = co_await ask_for_door(one, std::move(box), uid, *now);
    }
    if (one->door == before) {
        co_return;
    }
    // Does nothing for a session that is being opened: its record, with the door, is still to be written.
    std::vector<store::change> changes{
        store::set_host_door{one->record.order, static_cast<std::int64_t>(one->door.load())}};
    if (auto kept = co_await on_.store.commit(std::move(changes)); !kept) {
        core::log::warning("the host door of session {} could not be recorded: {}", one->record.id,
                           kept.error().message);
    }
}

task<host_door> live_registry::ask_for_door(session_ptr one, std::shared_ptr<sandbox> box,
                                            std::optional<std::uint32_t> uid, settings now) {
    const auto is_ours = [](auto id) { return !id || std::cmp_equal(*id, ::geteuid()); };
    door_question what;
    what.root = blocking::workspace_root(*one->record.workspace, one->record.id);
    what.id = one->record.id;
    what.work_dir = now.work_dir;
    what.may_write = is_ours(now.sandbox_uid) && is_ours(uid);
    const auto door =
        co_await prove_door(on_.workers, calls_, std::move(box), std::move(what), on_.waits.door);
    if (door == host_door::shut) {
        core::log::info("session {}: its sandbox's work directory is not the host's, files/* are left to it",
                        one->record.id);
    }
    co_return door;
}

task<result<native_outcome>> live_registry::native(std::string id, native_call call) {
    const auto arrived = std::chrono::steady_clock::now();
    const auto one = find_listed(id);
    if (!one) {
        co_return no_such(id);
    }
    if (stopping_) {
        co_return leaving();
    }
    if (door_of(*one) < (changes(call.op) ? host_door::writes : host_door::reads)) {
        co_return native_outcome(
            hostfs::native_failure{hostfs::refusal::ask_sandbox, "native files are off"});
    }
    // In flight: neither the reaper nor an eviction ends the session meanwhile (N9.5).
    const auto place = registered::enter(one, "native-" + std::to_string(next_native_call_++));
    if (!place) {
        co_return place.error();
    }
    one->touch(on_.clock);
    mark_dirty(one);
    const native_op op = call.op;
    const std::string target = call.path;
    native_outcome out =
        co_await through_host_door(one, std::move(call), place->mine(), arrived + time_allowed);
    if (!out && place->mine()->closing()) {
        co_return was_closed(id); // as a command that is pending then (N16.32)
    }
    if (!out && out.error().strange) {
        core::log::warning("files/{} in session {}: {}", name_of(op), id, out.error().message);
    }
    record(one, name_of(op), target, out.has_value(), detail_of(out), arrived);
    co_return out;
}

task<native_outcome> live_registry::through_host_door(session_ptr one, native_call call,
                                                      std::shared_ptr<ticket> mine, time_point until) {
    const auto now = policy();
    auto path = hostfs::parse_native(call.path, now->work_dir);
    if (!path) {
        co_return path.error();
    }
    std::shared_ptr<path_turn> turn;
    if (call.op == native_op::write || call.op == native_op::remove) {
        turn = std::make_shared<path_turn>(one, lock_key(now->work_dir, path->normalized));
        if (!co_await wait_for_turn(turn, mine, until)) {
            co_return too_long();
        }
    }
    auto job = std::make_shared<native_job>();
    job->op = call.op;
    job->path = std::move(*path);
    job->content = std::move(call.content);
    job->root = blocking::workspace_root(*one->record.workspace, one->record.id);
    job->of = one;
    job->mine = mine;
    job->max_bytes = static_cast<std::uint64_t>(read_limit(*now));
    job->until = until;
    if (auto out = at_once(*job)) {
        co_return std::move(*out);
    }
    auto held = std::make_shared<place_at_work>(one, std::move(turn));
    if (!co_await wait_for_place(held, mine, until)) {
        co_return too_long();
    }
    auto wake_by = [mine](std::function<void()> wake) { mine->wake_by(std::move(wake)); };
    auto out = co_await bounded<native_outcome>(calls_, held, on_worker(on_.workers, std::move(job)), until,
                                                std::move(wake_by));
    mine->wake_by({});
    if (!out) {
        co_return too_long();
    }
    co_return std::move(*out);
}

} // namespace sandboxd::session
