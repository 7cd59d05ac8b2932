#include "core/deadline.hpp"
#include "core/log.hpp"
#include "core/spawn.hpp"
#include "session/adoption.hpp"
#include "session/live_registry.hpp"
#include "session/place_at_work.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace sandboxd::session {

std::unique_ptr<registry> create_registry(environment on) {
    return std::make_unique<live_registry>(std::move(on));
}

live_registry::live_registry(environment on)
    : on_(std::move(on)),
      policy_(on_.config),
      queue_(static_cast<std::size_t>(std::max<std::int64_t>(1, policy_->max_running_commands))),
      flush_strand_(boost::asio::make_strand(on_.context.get_executor())),
      flush_now_(std::make_shared<core::event>(flush_strand_)),
      last_prune_(on_.clock.steady()),
      reap_now_(std::make_shared<core::event>(flush_strand_)),
      archive_(create_archive(on_.workers, texts_, [this] { return policy(); })) {}

live_registry::~live_registry() {
    calls_.abandon(); // a sandbox that never answers keeps its calls
}

void live_registry::restore_tombstones(const store::contents& kept) {
    for (const auto& one : kept.tombstones) {
        const auto token = on_.authority.session_token(one.id, one.token_nonce);
        tombstones_.add(auth::token_authority::digest(one.id, token), one.closed_at);
    }
}

/// Slots without a session: in the store, on the host, or both.
task<result<std::size_t>> live_registry::remove_strays(const store::contents& kept) {
    auto owned = co_await on_.builder.owned();
    if (!owned) {
        co_return owned.error();
    }
    std::map<std::string, slot_record> strays;
    for (const auto& one : *owned) {
        strays[one.slot] = one;
    }
    for (const auto& one : kept.slots) {
        strays[one.slot] = one;
    }
    for (const auto& one : kept.sessions) {
        if (one.session.slot) {
            strays.erase(*one.session.slot);
        }
    }
    for (const auto& one : kept.kept) {
        strays.erase(one.slot);
    }
    std::size_t removed = 0;
    for (const auto& [name, slot] : strays) {
        if (co_await discard(slot)) {
            ++removed;
        }
    }
    co_return removed;
}

void live_registry::restore_session(store::session_contents kept,
                                    const std::map<std::string, slot_record>& slots, adoption& work) {
    const auto& record = kept.session;
    next_order_ = std::max(next_order_.load(), record.order + 1);
    const bool asleep = record.state == store::session_state::hibernated;
    auto found = std::make_shared<session>(on_.context.get_executor(), record,
                                           on_.authority.session_token(record.id, record.token_nonce),
                                           most_at_work(on_.workers));
    found->log = asleep ? event_log::left_in_store(record.event_limit)
                        : event_log(record.event_limit, std::move(kept.events));
    found->at = asleep ? phase::hibernated : phase::running;
    found->idle_limit = std::chrono::seconds(policy_->idle_timeout);
    const std::chrono::duration<double> idle(std::max(0.0, on_.clock.wall() - record.last_activity));
    found->active_since =
        on_.clock.steady() - std::chrono::duration_cast<std::chrono::steady_clock::duration>(idle);
    found->opening->done.set();
    const auto slot = record.slot ? slots.find(*record.slot) : slots.end();
    if (slot != slots.end()) {
        found->slot = slot->second;
        work.all.emplace_back(found, slot->second);
    }
    admission_.enter_open(*found);
    if (!asleep) {
        admission_.enter_resident(*found);
    }
    [[maybe_unused]] const auto other = shards_.insert(found);
}

/// What closed sessions have left, and, in case a crash came before its stop, still runs.
void live_registry::restore_layers(const store::contents& kept,
                                   const std::map<std::string, slot_record>& slots, adoption& work) {
    for (const auto& one : kept.kept) {
        const auto slot = slots.find(one.slot);
        if (slot == slots.end()) {
            continue;
        }
        const std::chrono::duration<double> age(std::max(0.0, on_.clock.wall() - one.since));
        kept_.add(
            {one, slot->second,
             on_.clock.steady() - std::chrono::duration_cast<std::chrono::steady_clock::duration>(age)});
        work.all.emplace_back(nullptr, slot->second);
    }
}

task<result<start_report>> live_registry::start() {
    auto kept = co_await on_.store.load();
    if (!kept) {
        co_return kept.error();
    }
    co_await load_policy(std::move(kept->policy));
    restore_tombstones(*kept);
    start_report report;
    auto removed = co_await remove_strays(*kept);
    if (!removed) {
        co_return removed.error();
    }
    report.removed = *removed;
    for (const auto& stone : kept->tombstones) {
        if (stone.purge && std::ranges::none_of(kept->sessions, [&stone](const auto& each) {
                return each.session.id == stone.id;
            })) {
            co_await purge_workspace(stone);
        }
    }
    std::map<std::string, slot_record> slots;
    for (const auto& one : kept->slots) {
        slots[one.slot] = one;
    }
    auto work = std::make_shared<adoption>();
    restore_layers(*kept, slots, *work);
    for (auto& one : kept->sessions) {
        report.asleep += one.session.state == store::session_state::hibernated ? 1 : 0;
        restore_session(std::move(one), slots, *work);
    }
    co_await adopt_all(work);
    report.adopted = work->found;
    report.dead = kept->sessions.size() - work->found - report.asleep;
    // Blocks of event numbers, so that the first command of each session is logged.
    std::vector<store::change> numbers{prune_now()};
    for (const auto& one : shards_.all()) {
        const std::lock_guard lock(one->mutex);
        numbers.emplace_back(store::reserve_events{one->record.order, one->log.wanted_limit()});
    }
    if (auto written = co_await on_.store.commit(std::move(numbers)); !written) {
        co_return written.error();
    }
    for (const auto& one : shards_.all()) {
        const std::lock_guard lock(one->mutex);
        one->log.reserved(one->log.wanted_limit());
    }
    core::spawn(flush_strand_, "the flusher", flusher_, life_of_flusher());
    core::spawn(flush_strand_, "the reaper", lives_, life_of_reaper());
    if (work->unsure != 0) {
        core::spawn(boost::asio::make_strand(on_.context.get_executor()), "looking for sandboxes again",
                    lives_, look_again());
    }
    core::log::info(
        "sessions found again: {}, without a sandbox: {}, asleep: {}; slots without a session removed: {}",
        report.adopted, report.dead, report.asleep, report.removed);
    co_return report;
}

namespace {
/// A gate has no wait with a limit; shutdown is in no hurry.
task<void> drained_until(core::gate& gate, std::chrono::steady_clock::time_point until) {
    while (gate.inside() != 0 && std::chrono::steady_clock::now() < until) {
        if (!co_await core::sleep_for(std::chrono::milliseconds(5))) {
            co_return;
        }
    }
}
} // namespace

/// What the numbers of the event logs are, exactly: after a clean end no block is wasted.
task<void> live_registry::settle() {
    co_await flush();
    std::vector<store::change> changes;
    for (const auto& one : shards_.all()) {
        changes.emplace_back(store::touch{one->record.order, one->last_activity});
        const std::lock_guard lock(one->mutex);
        changes.emplace_back(store::reserve_events{one->record.order, one->log.latest()});
    }
    if (auto settled = co_await on_.store.commit(std::move(changes)); !settled) {
        core::log::error("activity could not be written: {}", settled.error().message);
    }
}

task<void> live_registry::shutdown(shutdown_mode mode, std::chrono::steady_clock::duration limit) {
    const auto until = std::chrono::steady_clock::now() + limit;
    stopping_ = true;
    texts_.stop();
    requests_.close();
    for (const auto& one : shards_.all()) {
        end_commands(one);
    }
    co_await drained_until(requests_, until);
    if (mode == shutdown_mode::stop) {
        co_await close_all(until - std::chrono::steady_clock::now());
    }
    lives_.close();
    boost::asio::post(flush_strand_, [event = reap_now_] { event->set(); });
    co_await drained_until(lives_, until);
    boost::asio::post(flush_strand_, [event = flush_now_] { event->set(); });
    flusher_.close();
    co_await flusher_.drained();
    co_await settle();
    calls_.close();
    // What is in quarantine has had its time.
    co_await drained_until(calls_, std::min(until, std::chrono::steady_clock::now() + on_.waits.stop));
}

} // namespace sandboxd::session
