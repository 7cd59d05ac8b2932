#include "core/log.hpp"
#include "core/random.hpp"
#include "core/spawn.hpp"
#include "session/live_registry.hpp"
#include "session/place_at_work.hpp"
#include "session/refusals.hpp"
#include "session/workspace.hpp"

#include <utility>

namespace sandboxd::session {

namespace {
/// Calls its function unless it was told not to: for a coroutine that is destroyed or cancelled while it
/// waits.
template <class F>
class on_unwind {
public:
    explicit on_unwind(F run) : run_(std::move(run)) {}
    on_unwind(const on_unwind&) = delete;
    on_unwind& operator=(const on_unwind&) = delete;
    ~on_unwind() {
        if (armed_) {
            run_();
        }
    }
    void disarm() noexcept { armed_ = false; }

private:
    F run_;
    bool armed_ = true;
};
} // namespace

result<live_registry::plan> live_registry::plan_open(const open_request& request) const {
    plan wanted;
    const auto policy = policy_.get();
    wanted.alias = request.runtime && !request.runtime->empty() ? *request.runtime : policy->default_runtime;
    auto entry = on_.runtimes.entry(*policy, wanted.alias);
    if (!entry) {
        return entry.error();
    }
    wanted.entry = std::move(*entry);
    if (request.session_id) {
        wanted.id = *request.session_id;
        return wanted;
    }
    if (request.attach) {
        return error{errc::invalid, "To attach, name the session: attach needs a session_id"};
    }
    wanted.generated = true;
    do {
        wanted.id = "s-" + core::random_hex(8);
    } while (shards_.find(wanted.id));
    return wanted;
}

opened live_registry::answer_for(const session_ptr& one, bool created, bool generated) const {
    return {one->describe(on_.clock), one->token, created, generated};
}

task<std::optional<result<opened>>> live_registry::open_existing(session_ptr there, open_request request) {
    const std::string& id = there->record.id;
    {
        const std::lock_guard lock(there->mutex);
        if (there->at == phase::opening) {
            co_return error{errc::busy, "Session " + id + " is still opening"};
        }
        if (!is_listed(there->at)) {
            co_return std::nullopt;
        }
    }
    if (!request.reuse && !request.attach) {
        co_return error{errc::exists, "Session exists: " + id};
    }
    if (request.runtime && *request.runtime != there->record.runtime) {
        co_return error{errc::exists, "Session " + id + " runs '" + there->record.runtime +
                                          "'. Close it before changing runtime"};
    }
    if (auto awake = co_await wake_for_open(there); !awake) {
        co_return awake.error();
    }
    if (find_listed(id) != there) { // closed while it was woken
        co_return std::nullopt;
    }
    co_return answer_for(there, false, false);
}

task<result<void>> live_registry::may_attach(std::string id) {
    bool kept = kept_.has(id); // N16.24
    if (!kept && policy_->workspace_root) {
        kept = co_await on_.workers.run(
            [root = *policy_->workspace_root, id] { return blocking::workspace_exists(root, id); });
    }
    if (!kept) {
        co_return error{errc::not_found, "There is nothing to attach to: no session " + id +
                                             " is open and nothing of it is kept"};
    }
    co_return result<void>();
}

session_ptr live_registry::make_session(const plan& wanted, const open_request& request) {
    store::session_record kept;
    kept.order = next_order_++;
    kept.id = wanted.id;
    kept.runtime = wanted.alias;
    kept.entry = wanted.entry;
    kept.tenant = request.tenant;
    if (policy_->workspace_root) {
        kept.workspace = blocking::workspace_path(*policy_->workspace_root, wanted.id);
    }
    kept.token_nonce = auth::random_nonce();
    kept.created_at = on_.clock.wall();
    kept.last_activity = kept.created_at;
    kept.event_limit = event_log::first_block;
    auto token = on_.authority.session_token(kept.id, kept.token_nonce);
    auto fresh = std::make_shared<session>(on_.context.get_executor(), std::move(kept), std::move(token),
                                           most_at_work(on_.workers));
    fresh->touch(on_.clock);
    return fresh;
}

task<result<opened>> live_registry::open(open_request request) {
    const auto pass = requests_.enter();
    if (!pass) {
        co_return leaving();
    }
    auto wanted = plan_open(request);
    if (!wanted) {
        co_return wanted.error();
    }
    bool looked = false;
    for (;;) {
        if (auto there = shards_.find(wanted->id)) {
            if (auto answer = co_await open_existing(there, request)) {
                co_return std::move(*answer);
            }
            // It is being closed: that ends, at the latest when its sandbox is quarantined.
            std::shared_ptr<job> closing;
            {
                const std::lock_guard lock(there->mutex);
                closing = there->closing;
            }
            if (!co_await closing->done.wait_for(4 * on_.waits.stop)) {
                co_return error{errc::busy, "Session " + wanted->id + " is still closing"};
            }
            continue;
        }
        if (request.attach && !looked) {
            if (auto allowed = co_await may_attach(wanted->id); !allowed) {
                co_return allowed.error();
            }
            looked = true;
            continue;
        }
        auto fresh = make_session(*wanted, request);
        if (shards_.insert(fresh)) {
            continue;
        }
        auto cleared = make_room(fresh, true);
        if (!cleared) {
            {
                const std::lock_guard lock(fresh->mutex);
                fresh->step(trigger::build_failed);
            }
            shards_.erase(fresh);
            fresh->closing->done.set();
            co_return cleared.error();
        }
        co_return co_await launch(fresh, std::move(*cleared), wanted->generated);
    }
}

task<result<opened>> live_registry::launch(session_ptr fresh, way cleared, bool generated) {
    spawn_leaving(cleared);
    if (!core::spawn(fresh->strand, "opening a session", lives_, life_of_open(fresh, std::move(cleared)))) {
        fail_open(fresh, leaving());
        co_return leaving();
    }
    on_unwind lost([this, fresh, generated] {
        if (generated) {
            abandon(fresh);
        }
    });
    co_await fresh->opening->done.wait();
    lost.disarm();
    if (!fresh->opening->outcome) {
        co_return fresh->opening->outcome.error();
    }
    co_return answer_for(fresh, true, generated);
}

task<void> live_registry::life_of_open(session_ptr fresh, way cleared) {
    result<void> up = error{errc::internal, "The sandbox could not be started: an internal error"};
    try {
        up = co_await bring_up(fresh, std::move(cleared));
    } catch (const std::exception& e) {
        core::log::error("opening session {} failed: {}", fresh->record.id, e.what());
    }
    if (!up) {
        fail_open(fresh, up.error());
        co_return;
    }
    {
        const std::lock_guard lock(fresh->mutex);
        fresh->step(trigger::built);
    }
    watch_death(fresh);
    core::log::info("session {} is open ({})", fresh->record.id, fresh->record.runtime);
    fresh->opening->done.set();
    if (fresh->abandoned) {
        begin_close(fresh, false);
    }
}

/// Slot record, sandbox, session record, in this order: whatever a crash cuts off, the next start finds
/// either a session or a slot without one.
task<result<void>> live_registry::bring_up(session_ptr fresh, way cleared) {
    if (!co_await wait_for(std::move(cleared))) {
        co_return error{errc::capacity,
                        "Session limit reached: the session that was to make way could not be put to sleep"};
    }
    auto left = kept_.take(fresh->record.id);
    auto made = co_await build_fresh(fresh, left);
    if (!made) {
        if (left) {
            kept_.add(std::move(*left));
        }
        co_return made.error();
    }
    {
        const std::lock_guard lock(fresh->mutex);
        fresh->box = made->box;
        fresh->slot = made->slot;
    }
    fresh->touch(on_.clock);
    std::vector<store::change> changes{store::put_session{fresh->snapshot()},
                                       store::drop_kept{fresh->record.id}};
    if (auto kept = co_await on_.store.commit(std::move(changes)); !kept) {
        core::log::error("session {} could not be recorded: {}", fresh->record.id, kept.error().message);
        co_await undo(std::move(*made));
        if (left) {
            kept_.add(std::move(*left));
        }
        co_return could_not_record();
    }
    if (left && !made->had_slot) { // of another image: nobody can use it any more
        [[maybe_unused]] const bool removed = co_await discard(std::move(left->slot));
    }
    co_return result<void>();
}

/// With what a closed session of this id has left, where that fits: a layer fits its image only.
task<result<live_registry::built>> live_registry::build_fresh(session_ptr fresh,
                                                              const std::optional<kept_layers::entry>& left) {
    const auto& record = fresh->record;
    place_to_build where;
    if (left && keeps_layers()) {
        const auto spec = on_.runtimes.spec(*policy_.get(), record.runtime, record.entry);
        if (spec && spec->image == left->layer.image) {
            where.slot = left->slot;
        }
    }
    auto made = co_await build(fresh, std::move(where));
    if (!made && record.workspace) { // not what was there before: that is not empty, or is somebody's
        co_await on_.workers.run([path = *record.workspace, id = record.id] {
            blocking::remove_empty_workspace(blocking::workspace_root(path, id), id);
        });
    }
    co_return made;
}

void live_registry::fail_open(const session_ptr& fresh, error why) {
    std::shared_ptr<sandbox> released;
    {
        const std::lock_guard lock(fresh->mutex);
        fresh->step(trigger::build_failed);
        released = std::exchange(fresh->box, nullptr);
    }
    shards_.erase(fresh);
    admission_.leave(*fresh);
    fresh->opening->finish(std::move(why));
    fresh->closing->done.set();
}

void live_registry::abandon(const session_ptr& fresh) {
    fresh->abandoned = true;
    if (fresh->opening->done.is_set()) {
        begin_close(fresh, false);
    }
}

void live_registry::undelivered(const opened& answer) {
    if (!answer.generated || !answer.created) {
        return;
    }
    const auto one = find_listed(answer.session.id);
    if (one && one->token == answer.token) {
        begin_close(one, false);
    }
}

} // namespace sandboxd::session
