// Building and stopping the sandboxes of sessions.

#include "core/log.hpp"
#include "core/spawn.hpp"
#include "session/bounded.hpp"
#include "session/live_registry.hpp"
#include "session/refusals.hpp"
#include "session/workspace.hpp"

#include <utility>

namespace sandboxd::session {

namespace {
error could_not_start(const error& cause) {
    return {errc::start_failed, "The sandbox could not be started: " + cause.message};
}

/// For the 502; who is told that what was kept is gone gets the 410.
error as_told(error cause) {
    return cause.code == errc::gone ? std::move(cause) : could_not_start(cause);
}
} // namespace

task<result<live_registry::built>> live_registry::build(session_ptr one, place_to_build where) {
    const auto policy = policy_.get();
    auto spec = on_.runtimes.spec(*policy, one->record.runtime, one->record.entry);
    if (!spec) {
        co_return could_not_start(spec.error());
    }
    spec->session_id = one->record.id;
    if (policy->persist_containers) {
        spec->keep = where.only_there ? keeping::kept : keeping::layer;
    }
    if (one->record.workspace) {
        // Whose commands will work there: the runtime's own uid, else the service's setting (contract 4.6.4).
        auto owner = spec->uid;
        if (!owner && policy->sandbox_uid) {
            owner = static_cast<std::uint32_t>(*policy->sandbox_uid);
        }
        auto made = co_await on_.workers.run([one, owner] {
            const auto& id = one->record.id;
            return one->workspace.make(blocking::workspace_root(*one->record.workspace, id), id, owner);
        });
        if (!made) {
            co_return could_not_start(made.error());
        }
        spec->workspace_dir = std::move(*made);
    }
    const auto uid = spec->uid;
    auto answer = co_await build_in_slot(one, std::move(*spec), std::move(where.slot));
    if (answer) {
        co_await try_door(one, answer->box, uid);
        const std::lock_guard lock(one->mutex);
        one->idle_limit = std::chrono::seconds(policy->idle_timeout);
    }
    co_return answer;
}

/// A slot of its own is recorded before anything is started in it, and removed when that fails.
task<result<live_registry::built>> live_registry::build_in_slot(session_ptr one, sandbox_spec spec,
                                                                std::optional<slot_record> slot) {
    built made;
    made.had_slot = slot.has_value();
    if (!slot) {
        auto prepared = co_await on_.builder.prepare(spec);
        if (!prepared) {
            co_return could_not_start(prepared.error());
        }
        slot = std::move(*prepared);
    }
    std::vector<store::change> claim{store::put_slot{*slot}};
    if (auto kept = co_await on_.store.commit(std::move(claim)); !kept) {
        core::log::error("a slot for session {} could not be recorded: {}", one->record.id,
                         kept.error().message);
        if (!made.had_slot) {
            [[maybe_unused]] const bool removed = co_await discard(*slot);
        }
        co_return could_not_record();
    }
    made.slot = *slot;
    auto box = co_await on_.builder.build(std::move(spec), *slot);
    if (!box) {
        if (!made.had_slot) {
            [[maybe_unused]] const bool removed = co_await discard(*slot);
        }
        co_return as_told(box.error());
    }
    made.box = std::move(*box);
    co_return made;
}

/// Takes down what nobody will use; what was kept in its slot before stays there.
task<bool> live_registry::undo(built made) {
    co_return co_await stop_box(std::move(made.box), std::move(made.slot),
                                made.had_slot ? leaving_slot::kept : leaving_slot::empty);
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

/// Stops a sandbox and removes its slot, or leaves it with what is kept in it. False when it did not answer
/// in time: then it is quarantined, and the rest happens whenever it does answer.
task<bool> live_registry::stop_box(std::shared_ptr<sandbox> box, std::optional<slot_record> slot,
                                   leaving_slot how) {
    const bool purge = how == leaving_slot::empty;
    auto done = std::make_shared<core::shared_event>();
    if (box) {
        const auto strand = boost::asio::make_strand(on_.context.get_executor());
        if (!core::spawn(strand, "stopping a sandbox", calls_, run_stop(box, purge, done)) ||
            !co_await done->wait_for(on_.waits.stop)) {
            core::log::error("the sandbox in slot {} does not answer its stop: it is left in quarantine",
                             slot ? slot->slot : "?");
            ++quarantined_;
            core::spawn(strand, "a sandbox in quarantine", calls_,
                        outlast(purge ? slot : std::nullopt, done));
            co_return false;
        }
    }
    if (slot && purge) {
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

} // namespace sandboxd::session
