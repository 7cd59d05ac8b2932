#pragma once

#include "docker/json.hpp"

namespace sandboxd::docker {

/// One sample of `GET /containers/{id}/stats?stream=false&one-shot=true`; what the daemon does not tell is
/// absent and never 0 (engine-facts A9).
struct stats_sample {
    std::optional<std::uint64_t> memory_bytes; ///< without reclaimable file pages, as `docker stats` shows it
    std::optional<std::uint64_t> memory_limit_bytes;
    std::optional<std::uint64_t> pids;
    std::optional<std::uint64_t> cpu_ns;        ///< used by the container since it began
    std::optional<std::uint64_t> system_cpu_ns; ///< by the whole host
    std::optional<std::uint64_t> online_cpus;
};

/// cgroup v1 and v2.
[[nodiscard]] stats_sample read_stats(const json::object& from);

/// Of one CPU: 200 is two busy ones. Absent where it can't be told.
[[nodiscard]] std::optional<double> cpu_percent(const stats_sample& before, const stats_sample& now);

} // namespace sandboxd::docker
