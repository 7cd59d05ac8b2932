#pragma once

#include "sandboxd/config.hpp"
#include "sandboxd/error.hpp"
#include "wire/model.hpp"

#include <map>
#include <string>
#include <string_view>

namespace sandboxd::wire {

/// A field that may be absent, and, unless `no_null`, be cleared.
template <class T>
bool read_value(const boost::json::value& from, change_to<T>& into, const rules& keep, const place& at,
                fault_list& faults) {
    into.given = true;
    if (from.is_null() && !keep.no_null) {
        into.value.reset();
        return true;
    }
    return read_value(from, into.value.emplace(), keep, at, faults);
}

/// One runtime's ceilings in PUT /policy.
struct runtime_change_body : runtime_change {
    static constexpr bool forbids_unknown = true;
    static constexpr auto fields() {
        using m = runtime_change;
        return std::tuple{optional("mem_limit", &m::mem_limit), optional("memswap_limit", &m::memswap_limit),
                          optional("cpus", &m::cpus, {.above = 0.0}),
                          optional("cpu_shares", &m::cpu_shares, {.above = 0.0}),
                          optional("pids_limit", &m::pids_limit, {.above = 0.0})};
    }
};

/// PUT /policy and the overrides file (contract 1.4.2). What can't be none refuses null (contract 11.4).
struct policy_change_body : policy_change {
    static constexpr bool forbids_unknown = true;
    static constexpr auto fields() {
        using m = policy_change;
        constexpr rules whole{.at_least = 0};
        constexpr rules positive{.above = 0.0};
        constexpr rules needed{.above = 0.0, .no_null = true};
        return std::tuple{optional("default_runtime", &m::default_runtime, {.no_null = true}),
                          optional("max_sessions", &m::max_sessions, whole),
                          optional("max_open_sessions", &m::max_open_sessions, whole),
                          optional("max_sessions_per_tenant", &m::max_sessions_per_tenant, whole),
                          optional("evict_idle_after", &m::evict_idle_after, whole),
                          optional("idle_timeout", &m::idle_timeout, {.at_least = 0, .no_null = true}),
                          optional("workspace_ttl", &m::workspace_ttl, whole),
                          optional("container_ttl", &m::container_ttl, whole),
                          optional("execute_timeout", &m::execute_timeout, needed),
                          optional("max_read_bytes", &m::max_read_bytes, needed),
                          optional("cpus", &m::cpus, positive),
                          optional("cpu_shares", &m::cpu_shares, positive),
                          optional("pids_limit", &m::pids_limit, positive),
                          optional("mem_limit", &m::mem_limit),
                          optional("memswap_limit", &m::memswap_limit),
                          optional("tmpfs_size", &m::tmpfs_size),
                          optional("runtimes", &m::runtimes)};
    }
};

bool read_value(const boost::json::value& from, std::map<std::string, runtime_change>& into,
                const rules& keep, const place& at, fault_list& faults);

/// A change as text, what it does not give left out; parse_policy() reads it back.
[[nodiscard]] std::string policy_text(const policy_change& change);

/// errc::invalid with a sentence that names the first fault.
[[nodiscard]] result<policy_change> parse_policy(std::string_view text);

} // namespace sandboxd::wire
