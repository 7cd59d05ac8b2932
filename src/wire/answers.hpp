#pragma once

#include "wire/model.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sandboxd::wire {

/// Contract 1.2.2.
struct session_usage {
    std::optional<std::uint64_t> memory_bytes;
    std::optional<std::uint64_t> memory_limit_bytes;
    std::optional<double> cpu_percent;
    std::optional<std::uint64_t> pids;

    static constexpr auto fields() {
        using m = session_usage;
        return std::tuple{optional("memory_bytes", &m::memory_bytes),
                          optional("memory_limit_bytes", &m::memory_limit_bytes),
                          optional("cpu_percent", &m::cpu_percent), optional("pids", &m::pids)};
    }
};

/// Contract 1.2.2.
struct session_info {
    std::string session_id;
    std::string runtime;
    std::optional<std::string> tenant;
    bool alive = false;
    std::string state = "running"; ///< or "hibernated"; clients refuse other words
    double created_at = 0;         ///< Unix seconds
    double last_activity = 0;
    double idle_seconds = 0; ///< never below 0
    std::optional<session_usage> usage;

    static constexpr auto fields() {
        using m = session_info;
        return std::tuple{optional("session_id", &m::session_id),
                          optional("runtime", &m::runtime),
                          optional("tenant", &m::tenant),
                          optional("alive", &m::alive),
                          optional("state", &m::state),
                          optional("created_at", &m::created_at),
                          optional("last_activity", &m::last_activity),
                          optional("idle_seconds", &m::idle_seconds),
                          optional("usage", &m::usage)};
    }
};

/// Contract 1.2.3.
struct session_created {
    session_info session;
    std::string token;

    static constexpr auto fields() {
        return std::tuple{optional("session", &session_created::session),
                          optional("token", &session_created::token)};
    }
};

/// Contract 1.4.4.
struct session_list {
    std::vector<session_info> sessions;
    std::optional<std::int64_t> limit;
    std::optional<std::int64_t> open_limit;
    std::optional<std::int64_t> tenant_limit;

    static constexpr auto fields() {
        using m = session_list;
        return std::tuple{optional("sessions", &m::sessions), optional("limit", &m::limit),
                          optional("open_limit", &m::open_limit), optional("tenant_limit", &m::tenant_limit)};
    }
};

/// Contract 1.2.5: the ceilings are the effective ones.
struct runtime_policy {
    std::string alias;
    std::string image;
    std::string description;
    bool builds = false;
    std::optional<std::string> mem_limit;
    std::optional<std::string> memswap_limit;
    std::optional<double> cpus;
    std::optional<std::int64_t> cpu_shares;
    std::optional<std::int64_t> pids_limit;
    std::optional<std::string> network_mode;
    std::optional<std::string> oci_runtime;

    static constexpr auto fields() {
        using m = runtime_policy;
        return std::tuple{optional("alias", &m::alias),
                          optional("image", &m::image),
                          optional("description", &m::description),
                          optional("builds", &m::builds),
                          optional("mem_limit", &m::mem_limit),
                          optional("memswap_limit", &m::memswap_limit),
                          optional("cpus", &m::cpus),
                          optional("cpu_shares", &m::cpu_shares),
                          optional("pids_limit", &m::pids_limit),
                          optional("network_mode", &m::network_mode),
                          optional("oci_runtime", &m::oci_runtime)};
    }
};

/// Contract 1.2.6, N3.1.
struct service_policy {
    std::vector<runtime_policy> runtimes; ///< sorted by alias
    std::string default_runtime;
    std::optional<std::int64_t> max_sessions;
    std::optional<std::int64_t> max_open_sessions;
    std::optional<std::int64_t> max_sessions_per_tenant;
    std::optional<std::int64_t> evict_idle_after;
    std::optional<std::string> mem_limit;
    std::optional<std::string> memswap_limit;
    std::optional<double> cpus;
    std::optional<std::int64_t> cpu_shares;
    std::optional<std::int64_t> pids_limit;
    std::optional<std::string> network_mode;
    std::optional<std::string> oci_runtime;
    std::string work_dir;
    std::int64_t idle_timeout = 0;
    std::int64_t execute_timeout = 0;
    std::int64_t max_read_bytes = 0;
    bool persist_containers = false;
    std::optional<std::int64_t> sandbox_uid;
    std::optional<std::int64_t> workspace_ttl;
    std::optional<std::int64_t> container_ttl;
    std::optional<std::string> tmpfs_size;
    bool prewarm = false;
    bool buildkit = false;
    bool native_files = false;
    bool native_writes = false;
    bool native_realpath = false;
    std::vector<std::string> not_enforced; ///< ours: what this host can't enforce, one sentence each
    std::vector<std::string> overridden;   ///< ours: the fields that PUT /policy has set

    static constexpr auto fields() {
        using m = service_policy;
        return std::tuple{optional("runtimes", &m::runtimes),
                          optional("default_runtime", &m::default_runtime),
                          optional("max_sessions", &m::max_sessions),
                          optional("max_open_sessions", &m::max_open_sessions),
                          optional("max_sessions_per_tenant", &m::max_sessions_per_tenant),
                          optional("evict_idle_after", &m::evict_idle_after),
                          optional("mem_limit", &m::mem_limit),
                          optional("memswap_limit", &m::memswap_limit),
                          optional("cpus", &m::cpus),
                          optional("cpu_shares", &m::cpu_shares),
                          optional("pids_limit", &m::pids_limit),
                          optional("network_mode", &m::network_mode),
                          optional("oci_runtime", &m::oci_runtime),
                          optional("work_dir", &m::work_dir),
                          optional("idle_timeout", &m::idle_timeout),
                          optional("execute_timeout", &m::execute_timeout),
                          optional("max_read_bytes", &m::max_read_bytes),
                          optional("persist_containers", &m::persist_containers),
                          optional("sandbox_uid", &m::sandbox_uid),
                          optional("workspace_ttl", &m::workspace_ttl),
                          optional("container_ttl", &m::container_ttl),
                          optional("tmpfs_size", &m::tmpfs_size),
                          optional("prewarm", &m::prewarm),
                          optional("buildkit", &m::buildkit),
                          optional("native_files", &m::native_files),
                          optional("native_writes", &m::native_writes),
                          optional("native_realpath", &m::native_realpath),
                          optional("not_enforced", &m::not_enforced),
                          optional("overridden", &m::overridden)};
    }
};

/// Ours: a runtime whose image is being made ready.
struct warming_image {
    std::string runtime; ///< alias
    std::string state;   ///< queued, looking, pulling, building or waiting (for the next attempt)
    std::optional<std::int64_t> step; ///< of a build: the one under way, from 1
    std::optional<std::int64_t> done; ///< steps or layers, where they can be counted
    std::optional<std::int64_t> total;
    std::int64_t attempt = 1;
    std::int64_t seconds = 0; ///< in this state

    static constexpr auto fields() {
        using m = warming_image;
        return std::tuple{optional("runtime", &m::runtime), optional("state", &m::state),
                          optional("step", &m::step),       optional("done", &m::done),
                          optional("total", &m::total),     optional("attempt", &m::attempt),
                          optional("seconds", &m::seconds)};
    }
};

/// Contract 1.3.2.
struct service_health {
    std::string status = "ok";
    std::int64_t sessions = 0; ///< resident
    std::optional<std::int64_t> limit;
    std::int64_t open_sessions = 0; ///< that exist
    std::optional<std::int64_t> open_limit;
    std::vector<std::string> runtimes;   ///< sorted aliases
    std::optional<std::string> degraded; ///< ours: why sandboxes can't be opened or closed now
    std::vector<warming_image> warming;  ///< ours: empty when all images are as ready as they get

    static constexpr auto fields() {
        using m = service_health;
        return std::tuple{
            optional("status", &m::status),         optional("sessions", &m::sessions),
            optional("limit", &m::limit),           optional("open_sessions", &m::open_sessions),
            optional("open_limit", &m::open_limit), optional("runtimes", &m::runtimes),
            optional("degraded", &m::degraded),     optional("warming", &m::warming)};
    }
};

/// Contract 1.3.1.
struct service_index {
    std::string service = "sandboxd";
    service_health health;
    std::string docs_url = "/docs";
    std::string openapi_url = "/openapi.json";
    std::optional<std::string> ui_url;
    std::vector<std::string> endpoints; ///< sorted, "/" left out

    static constexpr auto fields() {
        using m = service_index;
        return std::tuple{optional("service", &m::service),   optional("health", &m::health),
                          optional("docs_url", &m::docs_url), optional("openapi_url", &m::openapi_url),
                          optional("ui_url", &m::ui_url),     optional("endpoints", &m::endpoints)};
    }
};

/// Contract 2.11.
struct session_event {
    std::int64_t seq = 0;
    double at = 0; ///< Unix seconds
    std::string op;
    std::string target;
    bool ok = false;
    std::string detail;
    double duration_ms = 0; ///< one decimal

    static constexpr auto fields() {
        using m = session_event;
        return std::tuple{optional("seq", &m::seq),
                          optional("at", &m::at),
                          optional("op", &m::op),
                          optional("target", &m::target),
                          optional("ok", &m::ok),
                          optional("detail", &m::detail),
                          optional("duration_ms", &m::duration_ms)};
    }
};

/// Contract 1.5.2.
struct session_events {
    std::vector<session_event> events;
    std::int64_t latest_seq = 0; ///< the highest ever issued

    static constexpr auto fields() {
        return std::tuple{optional("events", &session_events::events),
                          optional("latest_seq", &session_events::latest_seq)};
    }
};

/// Contract 1.5.4, with design "Decided" 12's added fields.
struct exec_answer {
    std::string output; ///< raw bytes: decoded while writing
    std::optional<std::int64_t> exit_code;
    bool truncated = false;
    std::optional<std::int64_t> signal;
    bool timed_out = false;
    bool oom_killed = false;
    std::int64_t duration_ms = 0;
    std::uint64_t output_dropped_bytes = 0;

    static constexpr auto fields() {
        using m = exec_answer;
        return std::tuple{optional("output", &m::output),
                          optional("exit_code", &m::exit_code),
                          optional("truncated", &m::truncated),
                          optional("signal", &m::signal),
                          optional("timed_out", &m::timed_out),
                          optional("oom_killed", &m::oom_killed),
                          optional("duration_ms", &m::duration_ms),
                          optional("output_dropped_bytes", &m::output_dropped_bytes)};
    }
};

/// Contract 1.5.5, with design "Decided" 12's added fields. `std_out` and `std_err` are raw bytes.
struct run_answer {
    std::string std_out;
    std::string std_err;
    std::optional<std::int64_t> exit_code;
    bool timed_out = false;
    bool output_limited = false;
    std::optional<std::int64_t> output_limit; ///< only when limited
    std::optional<std::int64_t> signal;
    bool oom_killed = false;
    std::int64_t duration_ms = 0;
    std::uint64_t output_dropped_bytes = 0;

    static constexpr auto fields() {
        using m = run_answer;
        return std::tuple{optional("stdout", &m::std_out),
                          optional("stderr", &m::std_err),
                          optional("exit_code", &m::exit_code),
                          optional("timed_out", &m::timed_out),
                          optional("output_limited", &m::output_limited),
                          optional("output_limit", &m::output_limit),
                          optional("signal", &m::signal),
                          optional("oom_killed", &m::oom_killed),
                          optional("duration_ms", &m::duration_ms),
                          optional("output_dropped_bytes", &m::output_dropped_bytes)};
    }
};

} // namespace sandboxd::wire
