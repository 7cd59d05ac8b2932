#include "session/admission.hpp"

#include <spdlog/fmt/fmt.h>

namespace sandboxd::session {

result<void> admission::enter(const std::optional<std::string>& tenant, const settings& limits) {
    const std::lock_guard lock(mutex_);
    if (limits.max_open_sessions && open_ >= *limits.max_open_sessions) {
        return error{errc::capacity,
                     fmt::format("The service keeps at most {} sessions open and all of them are in use",
                                 *limits.max_open_sessions)};
    }
    if (tenant && limits.max_sessions_per_tenant) {
        const auto at = tenants_.find(*tenant);
        const std::int64_t held = at == tenants_.end() ? 0 : at->second;
        if (held >= *limits.max_sessions_per_tenant) {
            return error{errc::capacity, fmt::format("Tenant '{}' has {} of at most {} sessions", *tenant,
                                                     held, *limits.max_sessions_per_tenant)};
        }
    }
    if (limits.max_sessions && resident_ >= *limits.max_sessions) {
        return error{errc::capacity,
                     fmt::format("Session limit of {} reached: close one first", *limits.max_sessions)};
    }
    take(tenant);
    return {};
}

void admission::enter_unchecked(const std::optional<std::string>& tenant) {
    const std::lock_guard lock(mutex_);
    take(tenant);
}

void admission::take(const std::optional<std::string>& tenant) {
    ++resident_;
    ++open_;
    if (tenant) {
        ++tenants_[*tenant];
    }
}

void admission::leave(const std::optional<std::string>& tenant) {
    const std::lock_guard lock(mutex_);
    --resident_;
    --open_;
    if (!tenant) {
        return;
    }
    if (const auto at = tenants_.find(*tenant); at != tenants_.end() && --at->second <= 0) {
        tenants_.erase(at);
    }
}

std::int64_t admission::resident() const {
    const std::lock_guard lock(mutex_);
    return resident_;
}

std::int64_t admission::open() const {
    const std::lock_guard lock(mutex_);
    return open_;
}

} // namespace sandboxd::session
