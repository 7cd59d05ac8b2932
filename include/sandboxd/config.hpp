#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace sandboxd {

/// An image that would have to be built (contract 4.4.1).
struct runtime_definition {
    std::string name;
    std::string description;
    std::optional<std::string> image;
    std::optional<std::string> base_image;
    std::vector<std::string> packages;
    std::string package_manager = "pip"; ///< pip, npm, apt or cargo
    std::vector<std::string> setup_commands;
    std::vector<std::pair<std::string, std::string>> env_vars; ///< in the order given
    std::string work_dir = "/workspace";
    bool cache_image = true;
    std::optional<std::uint32_t> run_as_uid;

    friend bool operator==(const runtime_definition&, const runtime_definition&) = default;
};

/// One entry of the allowlist (contract 5.4): exactly one of image, built-in name, own definition. An absent
/// ceiling inherits the service's.
struct runtime_entry {
    std::string alias;
    std::optional<std::string> image;
    std::optional<std::string> builtin;           ///< `@name`, without the sign
    std::optional<runtime_definition> definition; ///< the entry's own, or the built-in's once resolved
    std::optional<std::string> description;
    std::optional<std::string> mem_limit;
    std::optional<std::string> memswap_limit;
    std::optional<double> cpus;
    std::optional<std::int64_t> cpu_shares;
    std::optional<std::int64_t> pids_limit;
    std::optional<std::string> network_mode;
    std::optional<std::string> oci_runtime;

    friend bool operator==(const runtime_entry&, const runtime_entry&) = default;
};

/// The settings in force, each `SANDBOXD_<NAME>` in the environment and `<name>` in the configuration file.
/// The defaults are the contract's (5.1, N2) and design.md's. Built and checked by config/load.hpp; plain
/// data after that.
struct settings {
    std::string token;
    std::vector<runtime_entry> runtimes; ///< in the order given; filled with the shipped allowlist when unset
    std::string default_runtime;
    std::optional<std::int64_t> max_sessions = 20;
    std::optional<std::int64_t> max_open_sessions;
    std::optional<std::int64_t> max_sessions_per_tenant;
    std::optional<std::int64_t> evict_idle_after; ///< s
    std::optional<std::string> mem_limit = "1g";
    std::optional<std::string> memswap_limit;
    std::optional<double> cpus = 2.0;
    std::optional<std::int64_t> cpu_shares;
    std::optional<std::int64_t> pids_limit = 512;
    std::optional<std::string> tmpfs_size = "64m";
    std::optional<std::string> network_mode = "none";
    std::optional<std::string> oci_runtime;
    std::string work_dir = "/workspace";
    std::optional<std::string> workspace_root;
    bool persist_containers = false;
    bool prewarm = true;
    std::int64_t idle_timeout = 1800;    ///< s
    std::int64_t cleanup_interval = 300; ///< s
    std::optional<std::int64_t> workspace_ttl;
    std::optional<std::int64_t> container_ttl;
    std::optional<std::int64_t> sandbox_uid;
    std::int64_t max_read_bytes = 8'388'608;
    std::int64_t execute_timeout = 300; ///< s
    std::int64_t max_workers = 32;
    bool ui_enabled = false;
    std::optional<std::string> policy_overrides;
    bool native_files = true;
    std::int64_t max_running_commands = 256;
    std::string host = "127.0.0.1"; ///< empty: all interfaces
    std::int64_t port = 8080;

    // Ours.
    std::string state_dir;              ///< resolved: /var/lib/sandboxd for root, else below XDG_STATE_HOME
    std::optional<std::string> backend; ///< "docker" or "oci"; chosen at start when unset
    std::optional<std::string> user;    ///< drop to this account after start
    std::pair<std::uint32_t, std::uint32_t> uid_range{
        0x10000000U, 0x6FFFFFFFU};    ///< first and last host uid, both included
    std::string on_shutdown = "keep"; ///< or "stop" (contract 2.16)
    std::int64_t io_threads = 0;      ///< resolved: the number of cores
    std::optional<std::string> tls_cert;
    std::optional<std::string> tls_key;
    std::string log_level = "info";
    std::string log_format = "text"; ///< or "json"
    std::optional<std::string> token_file;
    std::int64_t max_body_bytes = 134'217'728;
    std::int64_t max_inflight_bytes = 536'870'912;
    std::int64_t shutdown_grace = 10; ///< s
};

/// One field of a change: absent leaves alone, none clears (contract 1.4.2).
template <class T>
struct change_to {
    bool given = false;
    std::optional<T> value;

    friend bool operator==(const change_to&, const change_to&) = default;
};

/// What of a runtime can be changed while the service runs.
struct runtime_change {
    change_to<std::string> mem_limit;
    change_to<std::string> memswap_limit;
    change_to<double> cpus;
    change_to<std::int64_t> cpu_shares;
    change_to<std::int64_t> pids_limit;

    friend bool operator==(const runtime_change&, const runtime_change&) = default;
};

/// What `PUT /policy` and the overrides file can change (contract 1.4.2, 2.14), and nothing else.
struct policy_change {
    change_to<std::string> default_runtime;
    change_to<std::int64_t> max_sessions;
    change_to<std::int64_t> max_open_sessions;
    change_to<std::int64_t> max_sessions_per_tenant;
    change_to<std::int64_t> evict_idle_after;
    change_to<std::int64_t> idle_timeout;
    change_to<std::int64_t> execute_timeout;
    change_to<std::int64_t> max_read_bytes;
    change_to<std::int64_t> workspace_ttl;
    change_to<std::int64_t> container_ttl;
    change_to<std::string> mem_limit;
    change_to<std::string> memswap_limit;
    change_to<double> cpus;
    change_to<std::int64_t> cpu_shares;
    change_to<std::int64_t> pids_limit;
    change_to<std::string> tmpfs_size;
    std::map<std::string, runtime_change> runtimes; ///< by alias

    friend bool operator==(const policy_change&, const policy_change&) = default;
};

} // namespace sandboxd
