#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace sandboxd::session {

/// How long workspace directories have lain unused, told from their times without trusting the wall clock: a
/// directory's time is compared with it once, when it is first seen; from then on the steady clock counts.
/// Pure; not thread-safe.
class workspace_ages {
public:
    using time_point = std::chrono::steady_clock::time_point;

    /// One look at all directories: names and times (Unix seconds), and both clocks. Answers the names of
    /// those older than `limit`.
    [[nodiscard]] std::vector<std::string> look(const std::vector<std::pair<std::string, double>>& all,
                                                std::chrono::seconds limit, time_point steady, double wall);

private:
    struct seen {
        double time = 0;
        double age = 0; ///< s, when it was first seen
        time_point when;
    };
    /// How far the wall clock was set since the last look, s.
    [[nodiscard]] double step(time_point steady, double wall) const;

    std::unordered_map<std::string, seen> all_;
    std::optional<std::pair<time_point, double>> last_;
};

} // namespace sandboxd::session
