#include "api/shown.hpp"

#include "config/resolve.hpp"

#include <chrono>
#include <unistd.h>

namespace sandboxd::api {

namespace {

std::int64_t milliseconds(std::chrono::microseconds time) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
}

wire::runtime_policy shown(const settings& service, const runtime_entry& entry) {
    const config::ceilings ceilings = config::effective_ceilings(service, entry);
    return {.alias = entry.alias,
            .image = config::shown_image(entry),
            .description = config::shown_description(entry),
            .builds = config::builds(entry),
            .mem_limit = ceilings.mem_limit,
            .memswap_limit = ceilings.memswap_limit,
            .cpus = ceilings.cpus,
            .cpu_shares = ceilings.cpu_shares,
            .pids_limit = ceilings.pids_limit,
            .network_mode = ceilings.network_mode,
            .oci_runtime = ceilings.oci_runtime};
}

} // namespace

wire::session_info shown(const session::session_info& session) {
    wire::session_info out{.session_id = session.id,
                           .runtime = session.runtime,
                           .tenant = session.tenant,
                           .alive = session.alive,
                           .state = session.hibernated ? "hibernated" : "running",
                           .created_at = session.created_at,
                           .last_activity = session.last_activity,
                           .idle_seconds = session.idle_seconds,
                           .usage = std::nullopt};
    if (session.usage) {
        out.usage = wire::session_usage{.memory_bytes = session.usage->memory_bytes,
                                        .memory_limit_bytes = session.usage->memory_limit_bytes,
                                        .cpu_percent = session.usage->cpu_percent,
                                        .pids = session.usage->pids};
    }
    return out;
}

wire::service_health shown(session::health numbers) {
    return {.status = "ok",
            .sessions = numbers.sessions,
            .limit = numbers.limit,
            .open_sessions = numbers.open_sessions,
            .open_limit = numbers.open_limit,
            .runtimes = std::move(numbers.runtimes),
            .degraded = std::move(numbers.degraded),
            .warming = {}};
}

std::vector<wire::warming_image> shown(const std::vector<images::warming>& all) {
    std::vector<wire::warming_image> out;
    for (const auto& one : all) {
        const bool counted = one.of != 0;
        out.push_back({.runtime = one.alias,
                       .state = images::name_of(one.doing),
                       .step = one.step != 0 ? std::optional<std::int64_t>(one.step) : std::nullopt,
                       .done = counted ? std::optional<std::int64_t>(one.done) : std::nullopt,
                       .total = counted ? std::optional<std::int64_t>(one.of) : std::nullopt,
                       .attempt = one.attempt,
                       .seconds = one.since.count()});
    }
    return out;
}

wire::session_event shown(const session::event& event) {
    return {.seq = event.seq,
            .at = event.at,
            .op = event.op,
            .target = event.target,
            .ok = event.ok,
            .detail = event.detail,
            .duration_ms = event.duration_ms};
}

wire::exec_answer shown(session::exec_answer answer) {
    return {.output = std::move(answer.output),
            .exit_code = answer.end.exit_code,
            .truncated = answer.truncated,
            .signal = answer.end.signal,
            .timed_out = answer.end.timed_out,
            .oom_killed = answer.end.oom_killed,
            .duration_ms = milliseconds(answer.end.duration),
            .output_dropped_bytes = answer.end.output_dropped_bytes};
}

wire::run_answer shown(session::run_answer answer) {
    return {.std_out = std::move(answer.out),
            .std_err = std::move(answer.err),
            .exit_code = answer.end.exit_code,
            .timed_out = answer.end.timed_out,
            .output_limited = answer.output_limited,
            .output_limit = answer.output_limit,
            .signal = answer.end.signal,
            .oom_killed = answer.end.oom_killed,
            .duration_ms = milliseconds(answer.end.duration),
            .output_dropped_bytes = answer.end.output_dropped_bytes};
}

wire::service_policy shown(const settings& service) {
    wire::service_policy out;
    for (const std::string& alias : config::sorted_aliases(service)) {
        out.runtimes.push_back(shown(service, *config::resolve_runtime(service, alias)));
    }
    out.default_runtime = service.default_runtime;
    out.max_sessions = service.max_sessions;
    out.max_open_sessions = service.max_open_sessions;
    out.max_sessions_per_tenant = service.max_sessions_per_tenant;
    out.evict_idle_after = service.evict_idle_after;
    out.mem_limit = service.mem_limit;
    out.memswap_limit = service.memswap_limit;
    out.cpus = service.cpus;
    out.cpu_shares = service.cpu_shares;
    out.pids_limit = service.pids_limit;
    out.network_mode = service.network_mode;
    out.oci_runtime = service.oci_runtime;
    out.work_dir = service.work_dir;
    out.idle_timeout = service.idle_timeout;
    out.execute_timeout = service.execute_timeout;
    out.max_read_bytes = service.max_read_bytes;
    out.persist_containers = service.persist_containers;
    out.sandbox_uid = service.sandbox_uid;
    out.workspace_ttl = service.workspace_ttl;
    out.container_ttl = service.container_ttl;
    out.tmpfs_size = service.tmpfs_size;
    out.prewarm = service.prewarm;
    // Of the service as a whole; one session's own may be less (contract N3.1).
    out.native_files = service.native_files && service.workspace_root.has_value();
    out.native_writes = out.native_files && (!service.sandbox_uid || *service.sandbox_uid == ::geteuid());
    out.native_realpath = out.native_files;
    return out;
}

} // namespace sandboxd::api
