#include "docker/stats.hpp"

namespace sandboxd::docker {

namespace {

std::optional<std::uint64_t> positive(const json::value* value) {
    const auto number = count(value);
    return number && *number > 0 ? number : std::nullopt;
}

} // namespace

stats_sample read_stats(const json::object& from) {
    stats_sample sample;
    // A used memory, CPU time or limit of exactly 0 is a value the kernel could not read.
    sample.memory_bytes = positive(at(from, "memory_stats", "usage"));
    sample.memory_limit_bytes = positive(at(from, "memory_stats", "limit"));
    auto reclaimable = count(at(from, "memory_stats", "stats", "total_inactive_file")); // v1
    if (!reclaimable) {
        reclaimable = count(at(from, "memory_stats", "stats", "inactive_file")); // v2
    }
    if (sample.memory_bytes && reclaimable && *reclaimable < *sample.memory_bytes) {
        *sample.memory_bytes -= *reclaimable;
    }
    sample.pids = positive(at(from, "pids_stats", "current"));
    sample.cpu_ns = positive(at(from, "cpu_stats", "cpu_usage", "total_usage"));
    sample.system_cpu_ns = positive(at(from, "cpu_stats", "system_cpu_usage"));
    sample.online_cpus = positive(at(from, "cpu_stats", "online_cpus"));
    return sample;
}

std::optional<double> cpu_percent(const stats_sample& before, const stats_sample& now) {
    if (!before.cpu_ns || !now.cpu_ns || !before.system_cpu_ns || !now.system_cpu_ns || !now.online_cpus ||
        *now.cpu_ns < *before.cpu_ns || *now.system_cpu_ns <= *before.system_cpu_ns) {
        return std::nullopt;
    }
    const auto used = static_cast<double>(*now.cpu_ns - *before.cpu_ns);
    const auto passed = static_cast<double>(*now.system_cpu_ns - *before.system_cpu_ns);
    return used / passed * static_cast<double>(*now.online_cpus) * 100.0;
}

} // namespace sandboxd::docker
