#include "session/state.hpp"

namespace sandboxd::session {

namespace {
struct row {
    phase from;
    trigger what;
    phase to;
};

constexpr row table[] = {
    {phase::opening, trigger::built, phase::running},
    {phase::opening, trigger::build_failed, phase::closed},
    {phase::running, trigger::heal_started, phase::healing},
    {phase::running, trigger::sleep_started, phase::sleeping},
    {phase::running, trigger::close_started, phase::closing},
    {phase::healing, trigger::healed, phase::running},
    {phase::healing, trigger::heal_failed, phase::running},
    {phase::healing, trigger::close_started, phase::closing},
    {phase::sleeping, trigger::slept, phase::hibernated},
    {phase::sleeping, trigger::sleep_failed, phase::running},
    {phase::sleeping, trigger::close_started, phase::closing},
    {phase::hibernated, trigger::wake_started, phase::waking},
    {phase::hibernated, trigger::close_started, phase::closing},
    {phase::waking, trigger::woken, phase::running},
    {phase::waking, trigger::wake_failed, phase::hibernated},
    {phase::waking, trigger::close_started, phase::closing},
    {phase::closing, trigger::close_failed, phase::running},
    {phase::closing, trigger::close_failed_asleep, phase::hibernated},
    {phase::closing, trigger::stopped, phase::closed},
    {phase::closing, trigger::stop_overdue, phase::quarantined},
    {phase::quarantined, trigger::stopped, phase::closed},
};
} // namespace

std::optional<phase> next(phase from, trigger what) noexcept {
    for (const auto& one : table) {
        if (one.from == from && one.what == what) {
            return one.to;
        }
    }
    return std::nullopt;
}

bool is_listed(phase at) noexcept {
    switch (at) {
    case phase::running:
    case phase::healing:
    case phase::sleeping:
    case phase::hibernated:
    case phase::waking:
        return true;
    case phase::opening:
    case phase::closing:
    case phase::quarantined:
    case phase::closed:
        return false;
    }
    return false;
}

bool shows_hibernated(phase at) noexcept {
    return at == phase::hibernated || at == phase::waking;
}

std::string_view name_of(phase at) noexcept {
    switch (at) {
    case phase::opening:
        return "opening";
    case phase::running:
        return "running";
    case phase::healing:
        return "healing";
    case phase::sleeping:
        return "sleeping";
    case phase::hibernated:
        return "hibernated";
    case phase::waking:
        return "waking";
    case phase::closing:
        return "closing";
    case phase::quarantined:
        return "quarantined";
    case phase::closed:
        return "closed";
    }
    return "unknown";
}

} // namespace sandboxd::session
