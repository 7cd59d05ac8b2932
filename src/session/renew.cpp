// A session gets a sandbox again: healing and waking (contract 2.8, N9.1, N9.2, N16.1 to N16.3).

#include "core/log.hpp"
#include "core/spawn.hpp"
#include "session/live_registry.hpp"
#include "session/refusals.hpp"

#include <utility>

namespace sandboxd::session {

/// The job after which the session may have a live sandbox: one that is under way, or one begun now.
result<std::shared_ptr<job>> live_registry::begin_move(const session_ptr& one, bool for_run) {
    const bool only_kept = for_run && !one->record.workspace; // files elsewhere than in a workspace
    std::shared_ptr<job> moving;
    {
        const std::lock_guard lock(one->mutex);
        switch (one->at) {
        case phase::running:
            if (one->alive()) {
                return nullptr; // somebody else was faster, and the caller looks again
            }
            if (only_kept && !keeps_layers() && !one->unsure) {
                return gone_with_files(one->record.id);
            }
            one->step(trigger::heal_started);
            moving = one->moving = std::make_shared<job>();
            break;
        case phase::healing:
        case phase::sleeping:
        case phase::waking:
            return one->moving;
        case phase::hibernated:
            break;
        default:
            return was_closed(one->record.id);
        }
    }
    if (!moving) {
        return begin_wake(one, only_kept && keeps_layers()); // null: the same
    }
    if (!core::spawn(one->strand, "healing a session", lives_,
                     life_of_renewal(one, moving, phase::healing, only_kept, way()))) {
        {
            const std::lock_guard lock(one->mutex);
            one->step(trigger::heal_failed);
            one->moving.reset();
        }
        moving->finish(leaving());
    }
    return moving;
}

/// A sandbox that takes commands: the session's, or a new one in place of a dead one.
task<result<std::shared_ptr<sandbox>>> live_registry::obtain(session_ptr one, std::shared_ptr<ticket> mine,
                                                             bool for_run, time_point until) {
    for (;;) {
        bool falling_asleep = false;
        {
            const std::lock_guard lock(one->mutex);
            if (one->alive()) {
                co_return one->box;
            }
            falling_asleep = one->at == phase::sleeping;
        }
        auto begun = begin_move(one, for_run);
        if (!begun) {
            co_return begun.error();
        }
        const auto moving = std::move(*begun);
        if (!moving) {
            continue;
        }
        // A close is not waited out: whoever leaves word at the ticket wakes this one through the same event.
        mine->wake_by([moving] { moving->nudge(); });
        for (;;) {
            const auto changed = moving->changed();
            if (moving->done.is_set() || mine->must_not_start() ||
                !co_await changed->wait_for(until - std::chrono::steady_clock::now())) {
                break;
            }
        }
        mine->wake_by({});
        if (mine->closing()) {
            co_return was_closed(one->record.id);
        }
        if (!moving->done.is_set()) {
            co_return error{errc::timeout,
                            "The sandbox of session " + one->record.id + " is still being started"};
        }
        if (mine->must_not_start()) {
            co_return error{errc::unavailable, "The command was given up before it started"};
        }
        if (falling_asleep) {
            continue; // however that ended
        }
        if (!moving->outcome) {
            co_return moving->outcome.error();
        }
        const std::lock_guard lock(one->mutex);
        if (one->box) {
            co_return one->box;
        }
        if (!is_listed(one->at)) {
            co_return was_closed(one->record.id);
        }
    }
}

task<void> live_registry::life_of_renewal(session_ptr one, std::shared_ptr<job> moving, phase during,
                                          bool only_there, way cleared) {
    result<void> made = error{errc::start_failed, "The sandbox could not be started: an internal error"};
    try {
        made = co_await renew(one, during, only_there, std::move(cleared));
    } catch (const std::exception& e) {
        core::log::error("session {} could not get a sandbox: {}", one->record.id, e.what());
    }
    const bool waking = during == phase::waking;
    if (waking && !made) {
        admission_.leave_resident(*one);
    }
    {
        const std::lock_guard lock(one->mutex);
        if (made) {
            one->step(waking ? trigger::woken : trigger::healed);
        } else {
            one->step(waking ? trigger::wake_failed : trigger::heal_failed);
        }
        one->moving.reset();
    }
    if (made) {
        watch_death(one);
        core::log::info("session {} {}", one->record.id, waking ? "is awake" : "has a new sandbox");
    }
    moving->finish(std::move(made));
}

/// A sandbox that did not answer at start may answer now. Nothing of it is lost then.
task<bool> live_registry::find_again(session_ptr one) {
    std::optional<slot_record> slot;
    {
        const std::lock_guard lock(one->mutex);
        if (!one->unsure || !one->slot) {
            co_return false;
        }
        slot = one->slot;
    }
    auto found = co_await look_for(*slot);
    const bool answered = found && (*found || found->error().code == errc::gone);
    {
        const std::lock_guard lock(one->mutex);
        one->unsure = !answered;
    }
    if (!found || !*found) {
        co_return false;
    }
    take_in(one, std::move(**found));
    co_return true;
}

/// The dead one is stopped first, errors ignored (contract 2.8.2).
task<result<void>> live_registry::renew(session_ptr one, phase during, bool only_there, way cleared) {
    if (!co_await wait_for(std::move(cleared))) {
        co_return error{errc::capacity, "Cannot wake session " + one->record.id +
                                            ": the session that was to make way could not be put to sleep"};
    }
    if (during == phase::healing && co_await find_again(one)) {
        co_return result<void>();
    }
    const bool keeps = keeps_layers();
    if (only_there && !keeps) {
        co_return gone_with_files(one->record.id);
    }
    std::shared_ptr<sandbox> old_box;
    place_to_build where;
    where.only_there = only_there;
    {
        const std::lock_guard lock(one->mutex);
        old_box = std::exchange(one->box, nullptr);
        where.slot = one->slot;
    }
    co_await stop_box(std::move(old_box), where.slot, keeps ? leaving_slot::kept : leaving_slot::empty);
    if (!keeps) {
        where.slot.reset();
        const std::lock_guard lock(one->mutex);
        one->slot.reset();
    }
    auto made = co_await build(one, std::move(where));
    co_return co_await put_in_place(one, during, std::move(made));
}

task<result<void>> live_registry::put_in_place(session_ptr one, phase during, result<built> made) {
    if (!made) {
        if (made.error().code == errc::gone) {
            co_return gone_with_files(one->record.id);
        }
        co_return made.error();
    }
    {
        const std::lock_guard lock(one->mutex);
        if (one->at == during) {
            one->slot = made->slot;
        }
    }
    one->touch(on_.clock);
    // Not the whole record: a close may have dropped it meanwhile, and it must not come back.
    std::vector<store::change> changes{store::set_state{one->record.order, store::session_state::running,
                                                        made->slot.slot, one->last_activity}};
    auto kept = co_await on_.store.commit(std::move(changes));
    bool closing = false;
    {
        const std::lock_guard lock(one->mutex);
        closing = one->at != during;
        if (kept && !closing) {
            one->box = made->box;
        } else if (!made->had_slot) {
            one->slot.reset();
        }
    }
    if (closing) { // the close found no sandbox to stop
        co_await undo(std::move(*made));
        co_return was_closed(one->record.id);
    }
    if (!kept) {
        co_await undo(std::move(*made));
        co_return could_not_record();
    }
    co_return result<void>();
}

} // namespace sandboxd::session
