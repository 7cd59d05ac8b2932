#include "session/session.hpp"

#include <algorithm>
#include <utility>

namespace sandboxd::session {

std::shared_ptr<core::shared_event> job::changed() {
    const std::lock_guard lock(mutex_);
    return changed_;
}

void job::nudge() {
    auto fresh = std::make_shared<core::shared_event>();
    {
        const std::lock_guard lock(mutex_);
        changed_.swap(fresh);
    }
    fresh->set();
}

namespace {
host_door door_of(std::int64_t kept) {
    switch (kept) {
    case static_cast<std::int64_t>(host_door::writes):
        return host_door::writes;
    case static_cast<std::int64_t>(host_door::reads):
        return host_door::reads;
    default:
        return host_door::shut;
    }
}
} // namespace

session::session(const boost::asio::io_context::executor_type& executor, store::session_record kept,
                 std::string own_token, std::size_t most_at_work)
    : record(std::move(kept)),
      token(std::move(own_token)),
      strand(boost::asio::make_strand(executor)),
      last_activity(record.last_activity),
      door(door_of(record.host_door)),
      log(record.event_limit),
      at_work(most_at_work) {}

store::session_record session::snapshot() const {
    auto now = record;
    now.last_activity = last_activity;
    const std::lock_guard lock(mutex);
    now.state = shows_hibernated(at) ? store::session_state::hibernated : store::session_state::running;
    now.slot = slot ? std::optional(slot->slot) : std::nullopt;
    now.event_limit = log.limit();
    now.host_door = static_cast<std::int64_t>(door.load());
    return now;
}

bool session::step(trigger what) {
    const auto to = next(at, what);
    if (to) {
        at = *to;
    }
    return to.has_value();
}

void session::touch(const core::clock& clock) {
    last_activity = clock.wall();
    active_since = clock.steady();
}

session_info session::describe(const core::clock& clock) const {
    session_info info;
    info.id = record.id;
    info.runtime = record.runtime;
    info.tenant = record.tenant;
    info.created_at = record.created_at;
    info.last_activity = last_activity;
    const std::chrono::duration<double> idle = clock.steady() - active_since.load();
    info.idle_seconds = std::max(0.0, idle.count());
    const std::lock_guard lock(mutex);
    info.hibernated = shows_hibernated(at);
    info.alive = alive();
    return info;
}

} // namespace sandboxd::session
