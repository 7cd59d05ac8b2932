#include "core/log.hpp"
#include "core/spawn.hpp"
#include "session/live_registry.hpp"

#include <boost/asio/post.hpp>

#include <utility>

namespace sandboxd::session {

namespace {
constexpr double tombstones_kept = 86'400.0 * 2; ///< s; at least a day (N16.4)
constexpr auto prune_every = std::chrono::hours(1);
} // namespace

/// A command costs the store nothing: its session goes on a list once, however often it is touched before the
/// flusher comes.
void live_registry::mark_dirty(const session_ptr& one) {
    if (one->dirty.exchange(true)) {
        return;
    }
    const std::lock_guard lock(dirty_mutex_);
    dirty_.push_back(one);
}

task<void> live_registry::life_of_flusher() {
    while (!stopping_) {
        co_await flush_now_->wait_for(on_.waits.flush);
        flush_now_->clear();
        flush_asked_ = false;
        co_await flush();
        if (on_.clock.steady() - last_prune_ >= prune_every) {
            last_prune_ = on_.clock.steady();
            co_await prune();
        }
    }
}

/// Writes what has happened since the last time, in one transaction.
task<void> live_registry::flush() {
    std::vector<session_ptr> dirty;
    {
        const std::lock_guard lock(dirty_mutex_);
        dirty.swap(dirty_);
    }
    if (dirty.empty()) {
        co_return;
    }
    std::vector<store::change> changes;
    std::vector<std::pair<session_ptr, std::pair<std::int64_t, std::int64_t>>>
        written; // last event, new limit
    for (const auto& one : dirty) {
        one->dirty = false; // before it is looked at: what comes now goes on the next list
        const auto order = one->record.order;
        changes.emplace_back(store::touch{order, one->last_activity});
        const std::lock_guard lock(one->mutex);
        const auto limit = one->log.wanted_limit();
        if (limit != 0) {
            changes.emplace_back(store::reserve_events{order, limit});
        }
        auto fresh = one->log.unwritten();
        written.emplace_back(one, std::pair(one->log.latest(), limit));
        for (auto& each : fresh) {
            changes.emplace_back(store::add_event{order, std::move(each)});
        }
    }
    auto committed = co_await on_.store.commit(std::move(changes));
    if (!committed) {
        core::log::error("events and activity could not be written: {}", committed.error().message);
        for (const auto& one : dirty) {
            mark_dirty(one);
        }
        co_return;
    }
    for (const auto& [one, up_to] : written) {
        const std::lock_guard lock(one->mutex);
        one->log.written(up_to.first);
        if (one->at == phase::hibernated) {
            one->log.forget_written();
        }
        one->log.reserved(up_to.second);
    }
}

store::change live_registry::prune_now() {
    const double before = on_.clock.wall() - tombstones_kept;
    tombstones_.forget_before(before);
    return store::prune_tombstones{before};
}

task<void> live_registry::prune() {
    std::vector<store::change> changes{prune_now()};
    if (auto pruned = co_await on_.store.commit(std::move(changes)); !pruned) {
        core::log::warning("old tombstones could not be removed: {}", pruned.error().message);
    }
}

} // namespace sandboxd::session
