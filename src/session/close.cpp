#include "core/log.hpp"
#include "core/spawn.hpp"
#include "session/live_registry.hpp"
#include "session/workspace.hpp"

#include <algorithm>
#include <utility>

namespace sandboxd::session {

task<result<void>> live_registry::close(std::string id, bool purge) {
    const auto pass = requests_.enter();
    if (!pass) {
        co_return leaving();
    }
    const auto one = shards_.find(id);
    auto closing = one ? begin_close(one, purge) : nullptr;
    if (!closing) {
        co_return no_such(id);
    }
    co_await closing->done.wait();
    co_return closing->outcome;
}

/// Null when there is nothing to close: not listed, being closed already, or `only_if` says no.
std::shared_ptr<job> live_registry::begin_close(const session_ptr& one, bool purge,
                                                const std::function<bool(const session&)>& only_if) {
    std::shared_ptr<job> closing;
    bool asleep = false;
    {
        const std::lock_guard lock(one->mutex);
        asleep = shows_hibernated(one->at);
        if (!is_listed(one->at) || (only_if && !only_if(*one)) || !one->step(trigger::close_started)) {
            return nullptr;
        }
        closing = one->closing;
    }
    return spawn_close(one, purge, asleep, closing) ? closing : nullptr;
}

/// The session is `closing` already; false, and it stands as before, when the service is leaving.
bool live_registry::spawn_close(const session_ptr& one, bool purge, bool was_asleep,
                                const std::shared_ptr<job>& closing) {
    if (core::spawn(one->strand, "closing a session", lives_, life_of_close(one, purge, closing))) {
        return true;
    }
    {
        const std::lock_guard lock(one->mutex);
        one->step(was_asleep ? trigger::close_failed_asleep : trigger::close_failed);
        one->closing = std::make_shared<job>();
    }
    closing->finish(leaving());
    return false;
}

/// The records first: once they are written the session is gone, whatever happens to the rest. What a crash
/// leaves, a slot without a session and a workspace to be purged, the next start removes. A store that can't
/// write does not keep a sandbox alive: its files may be what fills the disk, so the record is tried again
/// when they are gone. Failing still, the close is answered as failed, and the next start finds the session
/// without its sandbox.
task<void> live_registry::life_of_close(session_ptr one, bool purge, std::shared_ptr<job> closing) {
    auto committed = co_await commit_close(one, purge);
    end_commands(one);
    try {
        co_await take_down(one, purge);
    } catch (const std::exception& e) {
        core::log::error("closing session {}: {}", one->record.id, e.what());
    }
    if (!committed) {
        committed = co_await commit_close(one, false); // what was to be purged is gone
    }
    admission_.leave(*one);
    shards_.erase(one);
    core::log::info("session {} is closed", one->record.id);
    closing->finish(std::move(committed));
}

task<result<void>> live_registry::commit_close(session_ptr one, bool purge) {
    store::tombstone stone;
    stone.id = one->record.id;
    stone.token_nonce = one->record.token_nonce;
    stone.closed_at = on_.clock.wall();
    if (purge) {
        stone.purge = one->record.workspace;
    }
    tombstones_.add(auth::token_authority::digest(one->record.id, one->token), stone.closed_at);
    std::vector<store::change> changes{store::drop_session{one->record.order}, store::put_tombstone{stone}};
    if (auto layer = purge ? std::nullopt : layer_of(*one)) {
        changes.emplace_back(store::put_kept{*layer});
    }
    auto committed = co_await on_.store.commit(std::move(changes));
    if (!committed) {
        core::log::error("closing session {} could not be recorded: {}", one->record.id,
                         committed.error().message);
        co_return error{errc::internal, "The close could not be recorded"};
    }
    co_return result<void>();
}

/// What the session leaves in its slot for the next one of its id.
std::optional<store::kept_layer> live_registry::layer_of(const session& one) const {
    const std::lock_guard lock(one.mutex);
    if (!keeps_layers() || !one.slot) {
        return std::nullopt;
    }
    const auto spec = on_.runtimes.spec(*policy_.get(), one.record.runtime, one.record.entry);
    return store::kept_layer{one.record.id, one.slot->slot, spec ? spec->image : "", on_.clock.wall()};
}

/// Pending commands answer at once, whatever the sandbox does (N16.32).
void live_registry::end_commands(const session_ptr& one) {
    std::vector<std::shared_ptr<ticket>> pending;
    {
        const std::lock_guard lock(one->mutex);
        for (const auto& [run_id, each] : one->commands) {
            pending.push_back(each);
        }
    }
    for (const auto& each : pending) {
        each->close();
    }
}

task<void> live_registry::take_down(session_ptr one, bool purge) {
    std::shared_ptr<job> moving;
    {
        const std::lock_guard lock(one->mutex);
        moving = one->moving;
    }
    if (moving) { // it sees the close and undoes what it has built
        co_await moving->done.wait_for(4 * on_.waits.stop);
    }
    auto layer = purge ? std::nullopt : layer_of(*one);
    std::shared_ptr<sandbox> box;
    std::optional<slot_record> slot;
    {
        const std::lock_guard lock(one->mutex);
        box = std::exchange(one->box, nullptr);
        slot = std::exchange(one->slot, std::nullopt);
    }
    const auto left = slot;
    const bool stopped =
        co_await stop_box(std::move(box), std::move(slot), layer ? leaving_slot::kept : leaving_slot::empty);
    if (layer) {
        kept_.add({std::move(*layer), *left, on_.clock.steady()});
    }
    {
        const std::lock_guard lock(one->mutex);
        one->step(stopped ? trigger::stopped : trigger::stop_overdue);
    }
    if (purge && one->record.workspace) {
        co_await on_.workers.run([one] { one->workspace.end(); });
        co_await purge_workspace({one->record.id, one->record.token_nonce, 0, one->record.workspace});
    }
}

/// Errors are ignored (contract 2.12): what can't be removed now can't be later.
task<void> live_registry::purge_workspace(store::tombstone stone) {
    const auto root = blocking::workspace_root(*stone.purge, stone.id);
    if (!root.empty()) {
        const bool removed =
            co_await on_.workers.run([root, id = stone.id] { return blocking::remove_workspace(root, id); });
        if (!removed) {
            core::log::warning("the workspace of session {} could not be removed whole", stone.id);
        }
    }
    std::vector<store::change> changes{store::purge_done{stone.token_nonce}};
    if (auto noted = co_await on_.store.commit(std::move(changes)); !noted) {
        core::log::warning("purging session {} could not be recorded: {}", stone.id, noted.error().message);
    }
}

task<void> live_registry::close_all(std::chrono::steady_clock::duration limit) {
    const auto until = std::chrono::steady_clock::now() + limit;
    std::vector<std::shared_ptr<job>> all;
    for (const auto& one : shards_.all()) {
        if (auto closing = begin_close(one, false)) {
            all.push_back(std::move(closing));
        }
    }
    for (const auto& closing : all) {
        if (!co_await closing->done.wait_for(until - std::chrono::steady_clock::now())) {
            core::log::error("a sandbox did not stop cleanly");
        }
    }
}

} // namespace sandboxd::session
