#include "core/deadline.hpp"
#include "core/log.hpp"
#include "core/spawn.hpp"
#include "session/bounded.hpp"
#include "session/live_registry.hpp"

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
      policy_(std::make_shared<const settings>(on_.config)),
      queue_(static_cast<std::size_t>(std::max<std::int64_t>(1, policy_->max_running_commands))),
      flush_strand_(boost::asio::make_strand(on_.context.get_executor())),
      flush_now_(std::make_shared<core::event>(flush_strand_)),
      last_prune_(on_.clock.steady()),
      archive_(create_archive(on_.workers, [this] { return policy(); })) {}

live_registry::~live_registry() {
    if (calls_->inside() != 0) {
        // A sandbox that never answered keeps its calls, and they their gate, until the program ends.
        [[maybe_unused]] auto* const left = calls_.release();
    }
}

/// Sessions whose sandboxes are being looked for.
struct live_registry::adoption {
    std::vector<std::pair<session_ptr, slot_record>> all;
    std::size_t next = 0; ///< under `mutex`
    std::size_t found = 0;
    std::size_t workers = 0;
    std::mutex mutex;
    core::shared_event done;
};

task<void> live_registry::adopt_some(std::shared_ptr<adoption> work) {
    for (;;) {
        std::pair<session_ptr, slot_record> mine;
        {
            const std::lock_guard lock(work->mutex);
            if (work->next == work->all.size()) {
                if (--work->workers == 0) {
                    work->done.set();
                }
                co_return;
            }
            mine = work->all[work->next++];
        }
        auto box = co_await bounded<result<std::shared_ptr<sandbox>>>(
            *calls_, nullptr, on_.builder.adopt(mine.second),
            std::chrono::steady_clock::now() + on_.waits.adopt);
        if (!box || !*box) {
            core::log::warning("the sandbox of session {} was not found again: {}", mine.first->record.id,
                               box ? box->error().message : "no answer");
            continue;
        }
        if ((**box)->inherited_commands() != 0) {
            core::spawn(boost::asio::make_strand(on_.context.get_executor()), "commands from before", lives_,
                        count_inherited(**box));
        }
        {
            const std::lock_guard lock(mine.first->mutex);
            mine.first->box = std::move(**box);
        }
        watch_death(mine.first);
        const std::lock_guard lock(work->mutex);
        ++work->found;
    }
}

/// Commands of an earlier service hold places like any other until they end (design.md "Decided" 21).
task<void> live_registry::count_inherited(std::shared_ptr<sandbox> box) {
    constexpr std::chrono::milliseconds look_again{100};
    std::vector<command_queue::place> places;
    for (auto running = box->inherited_commands(); running != 0 && box->alive() && !stopping_;
         running = box->inherited_commands()) {
        while (places.size() > running) {
            places.pop_back();
        }
        while (places.size() < running) {
            places.push_back(queue_.enter());
        }
        if (!co_await core::sleep_for(look_again)) {
            co_return;
        }
    }
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
    std::size_t removed = 0;
    for (const auto& [name, slot] : strays) {
        if (co_await discard(slot)) {
            ++removed;
        }
    }
    co_return removed;
}

task<result<start_report>> live_registry::start() {
    auto kept = co_await on_.store.load();
    if (!kept) {
        co_return kept.error();
    }
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
    std::vector<store::change> numbers{prune_now()};
    for (auto& one : kept->sessions) {
        next_order_ = std::max(next_order_.load(), one.session.order + 1);
        const auto slot = one.session.slot ? slots.find(*one.session.slot) : slots.end();
        auto token = on_.authority.session_token(one.session.id, one.session.token_nonce);
        auto found = std::make_shared<session>(on_.context.get_executor(), one.session, std::move(token));
        found->log = event_log(one.session.event_limit, std::move(one.events));
        found->at =
            one.session.state == store::session_state::hibernated ? phase::hibernated : phase::running;
        const std::chrono::duration<double> idle(std::max(0.0, on_.clock.wall() - one.session.last_activity));
        found->active_since =
            on_.clock.steady() - std::chrono::duration_cast<std::chrono::steady_clock::duration>(idle);
        found->opening->done.set();
        numbers.emplace_back(store::reserve_events{one.session.order, found->log.wanted_limit()});
        if (slot != slots.end()) {
            found->slot = slot->second;
            work->all.emplace_back(found, slot->second);
        }
        admission_.enter_unchecked(found->record.tenant);
        [[maybe_unused]] const auto other = shards_.insert(found);
    }
    const std::size_t at_once = std::min<std::size_t>(32, work->all.size());
    work->workers = at_once;
    for (std::size_t i = 0; i < at_once; ++i) {
        core::spawn(boost::asio::make_strand(on_.context.get_executor()), "adopting sandboxes", lives_,
                    adopt_some(work));
    }
    if (at_once != 0) {
        co_await work->done.wait();
    }
    report.adopted = work->found;
    report.dead = kept->sessions.size() - work->found;
    // Blocks of event numbers, so that the first command of each session is logged.
    if (auto written = co_await on_.store.commit(std::move(numbers)); !written) {
        co_return written.error();
    }
    for (const auto& one : shards_.all()) {
        const std::lock_guard lock(one->mutex);
        one->log.reserved(one->log.wanted_limit());
    }
    core::spawn(flush_strand_, "the flusher", flusher_, life_of_flusher());
    core::log::info("sessions found again: {}, without a sandbox: {}; slots without a session removed: {}",
                    report.adopted, report.dead, report.removed);
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
    requests_.close();
    for (const auto& one : shards_.all()) {
        end_commands(one);
    }
    co_await drained_until(requests_, until);
    if (mode == shutdown_mode::stop) {
        co_await close_all(until - std::chrono::steady_clock::now());
    }
    lives_.close();
    co_await drained_until(lives_, until);
    boost::asio::post(flush_strand_, [event = flush_now_] { event->set(); });
    flusher_.close();
    co_await flusher_.drained();
    co_await settle();
    calls_->close();
    // What is in quarantine has had its time.
    co_await drained_until(*calls_, std::min(until, std::chrono::steady_clock::now() + on_.waits.stop));
}

} // namespace sandboxd::session
