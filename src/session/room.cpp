// Who makes way at a ceiling (contract 2.4 to 2.6, N16.6, N19.15).

#include "session/live_registry.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <tuple>
#include <utility>

namespace sandboxd::session {

namespace {
using entry = std::tuple<std::chrono::steady_clock::duration, std::string_view, session_ptr>;

/// The `count` largest: longest first, the greater id where they are equal.
std::vector<session_ptr> longest(std::vector<entry> all, std::size_t count) {
    const auto end = all.begin() + static_cast<std::ptrdiff_t>(std::min(count, all.size()));
    std::ranges::partial_sort(all, end, std::ranges::greater(),
                              [](const entry& one) { return std::pair(std::get<0>(one), std::get<1>(one)); });
    std::vector<session_ptr> chosen;
    for (auto at = all.begin(); at != end; ++at) {
        chosen.push_back(std::get<2>(*at));
    }
    return chosen;
}

/// How many have to go before one more fits.
std::size_t too_many(std::int64_t now, const std::optional<std::int64_t>& ceiling) {
    return ceiling && now >= *ceiling ? static_cast<std::size_t>(now - *ceiling + 1) : 0;
}

error full(std::string text) {
    return {errc::capacity, std::move(text)};
}
} // namespace

/// Only those whose files outlive their sandbox: a session may have been opened before the service had a
/// workspace root.
std::vector<session_ptr> live_registry::longest_idle(std::size_t count, std::chrono::seconds at_least) const {
    std::vector<entry> candidates;
    for (const auto& one : shards_.unsorted()) {
        const std::lock_guard lock(one->mutex);
        const auto idle = one->idle(on_.clock);
        if (one->at == phase::running && idle >= at_least && !one->in_flight() &&
            (one->record.workspace || keeps_layers())) {
            candidates.emplace_back(idle, one->record.id, one);
        }
    }
    return longest(std::move(candidates), count);
}

std::vector<session_ptr> live_registry::longest_asleep(std::size_t count) const {
    std::vector<entry> candidates;
    for (const auto& one : shards_.unsorted()) {
        const std::lock_guard lock(one->mutex);
        if (one->at == phase::hibernated && !one->in_flight()) {
            candidates.emplace_back(one->idle(on_.clock), one->record.id, one);
        }
    }
    return longest(std::move(candidates), count);
}

/// Moves them along the table, all or none. Nothing has begun yet: spawn_leaving() does that.
std::optional<live_registry::way> live_registry::claim(const std::vector<session_ptr>& idle,
                                                       const std::vector<session_ptr>& asleep) {
    way claimed;
    bool whole = true;
    for (const auto& one : idle) {
        const std::lock_guard lock(one->mutex);
        if (one->in_flight() || !one->step(trigger::sleep_started)) {
            whole = false;
            break;
        }
        one->moving = std::make_shared<job>();
        claimed.sleepers.emplace_back(one, one->moving);
    }
    for (const auto& one : asleep) {
        const std::lock_guard lock(one->mutex);
        if (!whole || one->at != phase::hibernated || one->in_flight() ||
            !one->step(trigger::close_started)) {
            whole = false;
            break;
        }
        claimed.closers.emplace_back(one, one->closing);
    }
    if (whole) {
        return claimed;
    }
    for (const auto& [one, moving] : claimed.sleepers) {
        {
            const std::lock_guard lock(one->mutex);
            one->step(trigger::sleep_failed);
            one->moving.reset();
        }
        moving->finish(result<void>());
    }
    for (const auto& [one, closing] : claimed.closers) {
        {
            const std::lock_guard lock(one->mutex);
            one->step(trigger::close_failed_asleep);
            one->closing = std::make_shared<job>();
        }
        closing->finish(
            error{errc::busy, "Session " + one->record.id + " stays"}); // whoever looked in between
    }
    return std::nullopt;
}

/// Gives `newcomer` its places: those of an open session when it `is_new`, and a resident one. The ceilings
/// are looked at in the order of contract 1.4.3, and nobody makes way for one who is refused.
result<live_registry::way> live_registry::make_room(const session_ptr& newcomer, bool is_new) {
    const std::lock_guard one_at_a_time(room_mutex_);
    const auto policy = policy_.get();
    constexpr int tries = 100; // somebody used who was to make way
    for (int i = 0; i < tries; ++i) {
        const auto to_close = is_new ? too_many(admission_.open(), policy->max_open_sessions) : 0;
        const auto asleep = to_close != 0 ? longest_asleep(to_close) : std::vector<session_ptr>();
        if (asleep.size() < to_close) {
            return full(fmt::format("The service keeps at most {} sessions open and all of them are in use",
                                    *policy->max_open_sessions));
        }
        const auto& tenant = newcomer->record.tenant;
        if (is_new && tenant && policy->max_sessions_per_tenant) {
            const auto leaving = std::ranges::count_if(
                asleep, [&tenant](const session_ptr& one) { return one->record.tenant == tenant; });
            const auto held = admission_.of_tenant(*tenant) - leaving;
            if (held >= *policy->max_sessions_per_tenant) {
                return full(fmt::format("Tenant '{}' has {} of at most {} sessions: close one first", *tenant,
                                        held, *policy->max_sessions_per_tenant));
            }
        }
        const auto to_sleep = too_many(admission_.resident(), policy->max_sessions);
        const auto idle = to_sleep != 0 && policy->evict_idle_after
                              ? longest_idle(to_sleep, std::chrono::seconds(*policy->evict_idle_after))
                              : std::vector<session_ptr>();
        if (idle.size() < to_sleep) {
            return full(fmt::format("Session limit of {} reached: close one first", *policy->max_sessions));
        }
        auto cleared = claim(idle, asleep);
        if (!cleared) {
            continue;
        }
        for (const auto& one : idle) {
            admission_.leave_resident(*one);
        }
        for (const auto& one : asleep) {
            admission_.leave(*one);
        }
        if (is_new) {
            admission_.enter_open(*newcomer);
        }
        admission_.enter_resident(*newcomer);
        return std::move(*cleared);
    }
    return full("Session limit reached, and everybody is busy: try again");
}

void live_registry::spawn_leaving(const way& cleared) {
    for (const auto& [one, moving] : cleared.sleepers) {
        spawn_sleep(one, moving);
    }
    for (const auto& [one, closing] : cleared.closers) {
        if (!spawn_close(one, false, true, closing)) {
            admission_.enter_open(*one);
        }
    }
}

/// False when one of them could not be put to sleep.
task<bool> live_registry::wait_for(way cleared) {
    bool slept = true;
    for (const auto& [one, moving] : cleared.sleepers) {
        co_await moving->done.wait();
        slept = slept && moving->outcome.has_value();
    }
    for (const auto& [one, closing] : cleared.closers) {
        co_await closing->done.wait();
    }
    co_return slept;
}

} // namespace sandboxd::session
