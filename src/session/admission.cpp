#include "session/admission.hpp"

#include "session/session.hpp"

#include <utility>

namespace sandboxd::session {

void admission::enter_open(session& one) {
    const std::lock_guard lock(mutex_);
    if (std::exchange(one.counted_open, true)) {
        return;
    }
    ++open_;
    if (one.record.tenant) {
        ++tenants_[*one.record.tenant];
    }
}

void admission::enter_resident(session& one) {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(one.counted_resident, true)) {
        ++resident_;
    }
}

void admission::leave_resident(session& one) {
    const std::lock_guard lock(mutex_);
    if (std::exchange(one.counted_resident, false)) {
        --resident_;
    }
}

void admission::leave(session& one) {
    leave_resident(one);
    const std::lock_guard lock(mutex_);
    if (!std::exchange(one.counted_open, false)) {
        return;
    }
    --open_;
    if (!one.record.tenant) {
        return;
    }
    if (const auto at = tenants_.find(*one.record.tenant); at != tenants_.end() && --at->second <= 0) {
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

std::int64_t admission::of_tenant(const std::string& tenant) const {
    const std::lock_guard lock(mutex_);
    const auto at = tenants_.find(tenant);
    return at == tenants_.end() ? 0 : at->second;
}

} // namespace sandboxd::session
