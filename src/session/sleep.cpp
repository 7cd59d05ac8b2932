// Putting sessions to sleep and waking them (contract 2.7, 2.8).

#include "core/log.hpp"
#include "core/spawn.hpp"
#include "session/live_registry.hpp"

#include <utility>

namespace sandboxd::session {

/// The session is `sleeping` already.
void live_registry::spawn_sleep(const session_ptr& one, const std::shared_ptr<job>& moving) {
    if (core::spawn(one->strand, "putting a session to sleep", lives_, life_of_sleep(one, moving))) {
        return;
    }
    admission_.enter_resident(*one);
    {
        const std::lock_guard lock(one->mutex);
        one->step(trigger::sleep_failed);
        one->moving.reset();
    }
    moving->finish(leaving());
}

task<void> live_registry::life_of_sleep(session_ptr one, std::shared_ptr<job> moving) {
    result<void> slept = error{errc::internal, "an internal error"};
    try {
        slept = co_await fall_asleep(one);
    } catch (const std::exception& e) {
        core::log::error("session {} could not be put to sleep: {}", one->record.id, e.what());
    }
    if (!slept) {
        admission_.enter_resident(*one); // it still has its sandbox
    }
    {
        const std::lock_guard lock(one->mutex);
        one->step(slept ? trigger::slept : trigger::sleep_failed);
        one->moving.reset();
    }
    if (slept) {
        core::log::info("session {} sleeps", one->record.id);
    }
    moving->finish(std::move(slept));
}

/// The record first: what a crash leaves then is a slot without a session, or one that holds what is kept,
/// and the next start takes care of both.
task<result<void>> live_registry::fall_asleep(session_ptr one) {
    one->touch(on_.clock); // shown as the moment it fell asleep
    const bool keeps = keeps_layers();
    std::vector<store::change> changes;
    std::int64_t last_event = 0;
    {
        const std::lock_guard lock(one->mutex);
        changes.emplace_back(store::set_state{
            one->record.order, store::session_state::hibernated,
            keeps && one->slot ? std::optional(one->slot->slot) : std::nullopt, one->last_activity});
        for (auto& each : one->log.unwritten()) {
            changes.emplace_back(store::add_event{one->record.order, std::move(each)});
        }
        last_event = one->log.latest();
    }
    if (auto kept = co_await on_.store.commit(std::move(changes)); !kept) {
        core::log::error("session {} could not be put to sleep: {}", one->record.id, kept.error().message);
        co_return error{errc::internal, "The session could not be recorded"};
    }
    std::shared_ptr<sandbox> box;
    std::optional<slot_record> slot;
    {
        const std::lock_guard lock(one->mutex);
        one->log.written(last_event);
        one->log.forget_written();
        one->sampled.reset();
        box = std::exchange(one->box, nullptr);
        one->unsure = false;
        slot = keeps ? one->slot : std::exchange(one->slot, std::nullopt);
    }
    co_await stop_box(std::move(box), std::move(slot), keeps ? leaving_slot::kept : leaving_slot::empty);
    co_return result<void>();
}

/// Null when it does not sleep (any more). The job ends with errc::capacity when there is no room.
std::shared_ptr<job> live_registry::begin_wake(const session_ptr& one, bool only_there) {
    auto moving = std::make_shared<job>();
    {
        const std::lock_guard lock(one->mutex);
        if (!one->step(trigger::wake_started)) {
            return nullptr;
        }
        one->moving = moving;
    }
    error why{errc::capacity, ""};
    if (auto room = make_room(one, false)) {
        spawn_leaving(*room);
        if (core::spawn(one->strand, "waking a session", lives_,
                        life_of_renewal(one, moving, phase::waking, only_there, std::move(*room)))) {
            return moving;
        }
        admission_.leave_resident(*one);
        why = leaving();
    } else {
        why.message = "Cannot wake session " + one->record.id + ": " + room.error().message;
    }
    {
        const std::lock_guard lock(one->mutex);
        one->step(trigger::wake_failed);
        one->moving.reset();
    }
    moving->finish(std::move(why));
    return moving;
}

/// For reuse and attach: a resident session is only looked at, one that sleeps is woken (contract 2.3).
task<result<void>> live_registry::wake_for_open(session_ptr one) {
    for (;;) {
        std::shared_ptr<job> moving;
        bool asleep = false;
        {
            const std::lock_guard lock(one->mutex);
            asleep = one->at == phase::hibernated;
            if (one->at == phase::sleeping || one->at == phase::waking) {
                moving = one->moving;
            } else if (!asleep) {
                co_return result<void>();
            }
        }
        if (asleep) {
            moving = begin_wake(one, keeps_layers() && !one->record.workspace);
        }
        if (!moving) {
            continue;
        }
        const bool waking = asleep;
        co_await moving->done.wait();
        if (waking && !moving->outcome) {
            co_return moving->outcome.error();
        }
    }
}

} // namespace sandboxd::session
