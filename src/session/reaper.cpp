// What happens by itself (contract 2.13): idle sessions are closed, those asleep for long too, what nobody
// uses is removed. Intervals are the steady clock's.

#include "core/log.hpp"
#include "session/live_registry.hpp"
#include "session/workspace.hpp"

#include <exception>

namespace sandboxd::session {

/// Never ends by itself: what fails in one pass is tried in the next.
task<void> live_registry::life_of_reaper() {
    auto next = on_.clock.steady() + std::chrono::seconds(policy_->cleanup_interval);
    while (!stopping_) {
        if (const auto now = on_.clock.steady(); now < next) {
            co_await reap_now_->wait_for(
                std::min<std::chrono::steady_clock::duration>(next - now, on_.waits.tick));
            continue;
        }
        next = on_.clock.steady() + std::chrono::seconds(policy_->cleanup_interval);
        try {
            close_idle();
        } catch (const std::exception& e) {
            core::log::error("Idle sandbox cleanup failed: {}", e.what());
        }
        try {
            co_await sweep();
        } catch (const std::exception& e) {
            core::log::error("Sweep failed: {}", e.what());
        }
    }
}

/// Resident sessions, dead ones too, idle for longer than their limit.
void live_registry::close_idle() {
    const auto idle_too_long = [this](const session& one) {
        return one.at == phase::running && !one.in_flight() && one.idle(on_.clock) > one.idle_limit;
    };
    for (const auto& one : shards_.unsorted()) {
        if (begin_close(one, false, idle_too_long)) {
            core::log::info("session {} was idle for longer than {} s: closing it", one->record.id,
                            one->idle_limit.count());
        }
    }
}

/// Sleeping sessions that nobody has woken or worked on for `idle_timeout`: 0 is at the next pass.
void live_registry::close_asleep() {
    const std::chrono::seconds limit(policy_->idle_timeout);
    const auto forgotten = [this, limit](const session& one) {
        return one.at == phase::hibernated && !one.in_flight() && one.idle(on_.clock) >= limit;
    };
    for (const auto& one : shards_.unsorted()) {
        if (begin_close(one, false, forgotten)) {
            core::log::info("session {} slept for {} s: closing it", one->record.id, limit.count());
        }
    }
}

task<void> live_registry::sweep() {
    co_await poll_overrides();
    close_asleep();
    co_await sweep_workspaces();
    co_await sweep_layers();
}

task<void> live_registry::sweep_workspaces() {
    const auto policy = policy_.get();
    if (!policy->workspace_root || !policy->workspace_ttl) {
        co_return;
    }
    const auto& root = *policy->workspace_root;
    const auto all = co_await on_.workers.run([root] {
        blocking::sweep_leftovers(root);
        return blocking::list_workspaces(root);
    });
    const auto old =
        ages_.look(all, std::chrono::seconds(*policy->workspace_ttl), on_.clock.steady(), on_.clock.wall());
    for (const auto& id : old) {
        const auto in_use = [this, id] { return shards_.find(id) != nullptr; };
        if (stopping_ || in_use()) {
            continue;
        }
        const bool gone = co_await on_.workers.run(
            [root, id, in_use] { return blocking::sweep_workspace(root, id, in_use); });
        if (gone) {
            core::log::info("the workspace of {} was unused for {} s and is removed", id,
                            *policy->workspace_ttl);
        }
    }
}

/// What closed sessions have left in their slots. One that fails does not keep the others.
task<void> live_registry::sweep_layers() {
    const auto ttl = policy_->container_ttl;
    if (!keeps_layers() || !ttl) {
        co_return;
    }
    for (const auto& id : kept_.older_than(on_.clock.steady() - std::chrono::seconds(*ttl))) {
        auto old = stopping_ ? std::nullopt : kept_.take(id);
        if (!old) {
            continue;
        }
        std::vector<store::change> drop{store::drop_kept{id}};
        if (auto dropped = co_await on_.store.commit(std::move(drop)); !dropped) {
            kept_.add(std::move(*old));
            continue;
        }
        [[maybe_unused]] const bool removed = co_await discard(std::move(old->slot));
        core::log::info("what was kept of {} for {} s is removed", id, *ttl);
    }
}

} // namespace sandboxd::session
