// Building, healing and stopping the sandboxes of sessions.

#include "core/log.hpp"
#include "core/spawn.hpp"
#include "session/bounded.hpp"
#include "session/live_registry.hpp"
#include "session/workspace.hpp"

#include <utility>

namespace sandboxd::session {

namespace {
error could_not_start(const error& cause) {
    return {errc::start_failed, "The sandbox could not be started: " + cause.message};
}

error gone_with_files(const session& one) {
    return {errc::gone, "The sandbox of session " + one.record.id + " is gone, and its files with it"};
}

error was_closed(const session& one) {
    return {errc::gone, "Session " + one.record.id + " was closed"};
}
} // namespace

task<result<live_registry::built>> live_registry::build(session_ptr one) {
    auto spec = on_.runtimes.spec(one->record.runtime, one->record.entry);
    if (!spec) {
        co_return could_not_start(spec.error());
    }
    spec->session_id = one->record.id;
    if (one->record.workspace) {
        auto made = co_await on_.workers.run(
            [path = *one->record.workspace, id = one->record.id, uid = policy_->sandbox_uid] {
                return blocking::make_workspace(blocking::workspace_root(path, id), id,
                                                uid ? std::optional(static_cast<std::uint32_t>(*uid))
                                                    : std::nullopt);
            });
        if (!made) {
            co_return could_not_start(made.error());
        }
        spec->workspace_dir = std::move(*made);
    }
    const auto uid = spec->uid;
    auto answer = co_await build_in_slot(one, std::move(*spec));
    if (answer) {
        co_await try_door(one, answer->box, uid);
    }
    co_return answer;
}

task<result<live_registry::built>> live_registry::build_in_slot(session_ptr one, sandbox_spec spec) {
    auto slot = co_await on_.builder.prepare(spec);
    if (!slot) {
        co_return could_not_start(slot.error());
    }
    std::vector<store::change> claim{store::put_slot{*slot}};
    if (auto kept = co_await on_.store.commit(std::move(claim)); !kept) {
        core::log::error("a slot for session {} could not be recorded: {}", one->record.id,
                         kept.error().message);
        [[maybe_unused]] const bool removed = co_await discard(*slot);
        co_return error{errc::internal, "The session could not be recorded"};
    }
    auto box = co_await on_.builder.build(std::move(spec), *slot);
    if (!box) {
        [[maybe_unused]] const bool removed = co_await discard(*slot);
        co_return could_not_start(box.error());
    }
    co_return built{std::move(*slot), std::move(*box)};
}

/// True when nothing of the slot is left. Else its record stays, and the next start tries again.
task<bool> live_registry::discard(slot_record slot) {
    auto removed = co_await on_.builder.remove(slot);
    if (!removed) {
        core::log::warning("slot {} could not be removed: {}", slot.slot, removed.error().message);
        co_return false;
    }
    std::vector<store::change> drop{store::drop_slot{slot.slot}};
    auto dropped = co_await on_.store.commit(std::move(drop));
    co_return dropped.has_value();
}

task<void> live_registry::run_stop(std::shared_ptr<sandbox> box, bool purge,
                                   std::shared_ptr<core::shared_event> done) {
    co_await box->stop(purge);
    done->set();
}

/// Stops a sandbox and removes its slot. False when it did not answer in time: then it is quarantined, and
/// the rest happens whenever it does answer.
task<bool> live_registry::stop_box(std::shared_ptr<sandbox> box, std::optional<slot_record> slot,
                                   bool purge) {
    auto done = std::make_shared<core::shared_event>();
    if (box) {
        const auto strand = boost::asio::make_strand(on_.context.get_executor());
        if (!core::spawn(strand, "stopping a sandbox", *calls_, run_stop(box, purge, done)) ||
            !co_await done->wait_for(on_.waits.stop)) {
            core::log::error("the sandbox in slot {} does not answer its stop: it is left in quarantine",
                             slot ? slot->slot : "?");
            ++quarantined_;
            core::spawn(strand, "a sandbox in quarantine", *calls_, outlast(slot, done));
            co_return false;
        }
    }
    if (slot) {
        [[maybe_unused]] const bool removed = co_await discard(*slot);
    }
    co_return true;
}

task<void> live_registry::outlast(std::optional<slot_record> slot, std::shared_ptr<core::shared_event> done) {
    co_await done->wait();
    --quarantined_;
    if (slot) {
        [[maybe_unused]] const bool removed = co_await discard(*slot);
    }
}

void live_registry::watch_death(const session_ptr& one) {
    std::shared_ptr<sandbox> box;
    {
        const std::lock_guard lock(one->mutex);
        box = one->box;
    }
    if (box) {
        box->on_death(
            [id = one->record.id] { core::log::warning("the sandbox of session {} has died", id); });
    }
}

/// A sandbox that takes commands: the session's, or a new one in place of a dead one (contract 2.8, N9.1,
/// N16.1).
task<result<std::shared_ptr<sandbox>>> live_registry::obtain(session_ptr one, std::shared_ptr<ticket> mine,
                                                             bool for_run, time_point until) {
    std::shared_ptr<job> healing;
    bool ours = false;
    {
        const std::lock_guard lock(one->mutex);
        if (one->alive()) {
            co_return one->box;
        }
        if (one->at == phase::running) {
            if (for_run && !one->record.workspace) {
                co_return gone_with_files(*one);
            }
            one->step(trigger::heal_started);
            one->healing = std::make_shared<job>();
            ours = true;
        } else if (one->at != phase::healing) {
            co_return was_closed(*one);
        }
        healing = one->healing;
    }
    if (ours && !core::spawn(one->strand, "healing a session", lives_, life_of_heal(one, healing))) {
        {
            const std::lock_guard lock(one->mutex);
            one->step(trigger::heal_failed);
        }
        healing->finish(leaving());
    }
    // A close is not waited out: whoever leaves word at the ticket wakes this one through the same event.
    mine->wake_by([healing] { healing->nudge(); });
    for (;;) {
        const auto changed = healing->changed();
        if (healing->done.is_set() || mine->must_not_start() ||
            !co_await changed->wait_for(until - std::chrono::steady_clock::now())) {
            break;
        }
    }
    mine->wake_by({});
    if (mine->closing()) {
        co_return was_closed(*one);
    }
    if (!healing->done.is_set()) {
        co_return error{errc::timeout,
                        "The sandbox of session " + one->record.id + " is still being started"};
    }
    if (!healing->outcome) {
        co_return healing->outcome.error();
    }
    const std::lock_guard lock(one->mutex);
    if (!one->box) {
        co_return was_closed(*one);
    }
    co_return one->box;
}

task<void> live_registry::life_of_heal(session_ptr one, std::shared_ptr<job> healing) {
    result<void> healed = error{errc::start_failed, "The sandbox could not be started: an internal error"};
    try {
        healed = co_await replace_box(one);
    } catch (const std::exception& e) {
        core::log::error("healing session {} failed: {}", one->record.id, e.what());
    }
    {
        const std::lock_guard lock(one->mutex);
        one->step(healed ? trigger::healed : trigger::heal_failed);
        one->healing.reset();
    }
    if (healed) {
        watch_death(one);
        core::log::info("session {} has a new sandbox", one->record.id);
    }
    healing->finish(std::move(healed));
}

/// The dead one is stopped first, errors ignored (contract 2.8.2).
task<result<void>> live_registry::replace_box(session_ptr one) {
    std::shared_ptr<sandbox> old_box;
    std::optional<slot_record> old_slot;
    {
        const std::lock_guard lock(one->mutex);
        old_box = std::exchange(one->box, nullptr);
        old_slot = one->slot;
    }
    co_await stop_box(old_box, old_slot, false);
    auto made = co_await build(one);
    bool closing = false;
    {
        const std::lock_guard lock(one->mutex);
        closing = one->at != phase::healing;
        one->slot.reset();
        if (made && !closing) {
            one->slot = made->slot;
        }
    }
    if (closing) {
        if (made) {
            co_await stop_box(made->box, made->slot, true);
        }
        co_return was_closed(*one);
    }
    one->touch(on_.clock);
    // Not the whole record: a close may have dropped it meanwhile, and it must not come back.
    std::vector<store::change> changes{
        store::set_slot{one->record.order, made ? std::optional(made->slot.slot) : std::nullopt}};
    auto kept = co_await on_.store.commit(std::move(changes));
    if (made && !kept) {
        {
            const std::lock_guard lock(one->mutex);
            one->slot.reset();
        }
        co_await stop_box(made->box, made->slot, true);
        co_return error{errc::internal, "The session could not be recorded"};
    }
    if (!made) {
        co_return made.error();
    }
    {
        const std::lock_guard lock(one->mutex);
        closing = one->at != phase::healing;
        if (!closing) {
            one->box = made->box;
        }
    }
    if (closing) { // the close found no sandbox to stop
        co_await stop_box(made->box, made->slot, true);
        co_return was_closed(*one);
    }
    co_return result<void>();
}

} // namespace sandboxd::session
