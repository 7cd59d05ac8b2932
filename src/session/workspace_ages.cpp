#include "session/workspace_ages.hpp"

#include <algorithm>
#include <cmath>

namespace sandboxd::session {

namespace {
double seconds(std::chrono::steady_clock::duration time) {
    return std::chrono::duration<double>(time).count();
}
} // namespace

double workspace_ages::step(time_point steady, double wall) const {
    constexpr double noise = 2; // two clocks are not read at one time
    if (!last_) {
        return 0;
    }
    const double by = (wall - last_->second) - seconds(steady - last_->first);
    return std::abs(by) < noise ? 0 : by;
}

std::vector<std::string> workspace_ages::look(const std::vector<std::pair<std::string, double>>& all,
                                              std::chrono::seconds limit, time_point steady, double wall) {
    const double stepped = step(steady, wall);
    last_.emplace(steady, wall);
    std::unordered_map<std::string, seen> now;
    std::vector<std::string> old;
    for (const auto& [name, time] : all) {
        seen one;
        const auto known = all_.find(name);
        if (known != all_.end() && known->second.time == time) {
            one = known->second;
        } else {
            // Whether its time was set before or after a step can't be told: the younger one counts. A time
            // that has not come yet was set before the clock went back.
            const double before = wall - stepped - time;
            const double after = wall - time;
            one = {time, std::max(0.0, after < 0 ? before : std::min(before, after)), steady};
        }
        if (one.age + seconds(steady - one.when) > static_cast<double>(limit.count())) {
            old.push_back(name);
        }
        now.emplace(name, one);
    }
    all_.swap(now);
    return old;
}

} // namespace sandboxd::session
