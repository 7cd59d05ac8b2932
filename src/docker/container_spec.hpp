#pragma once

#include "sandboxd/sandbox.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sandboxd::docker {

using text_pairs = std::vector<std::pair<std::string, std::string>>;

struct mount {
    enum class kind : unsigned char { bind, volume };
    kind type = kind::bind;
    std::string source; ///< host path or volume name
    std::string destination;
    bool read_only = false;
    /// A bound directory that the daemon's host does not have is made by the daemon (as root): it may see
    /// other directories than the service does (contract N17, N.56). Not where a path has a colon.
    bool make_source = false;
};

struct ulimit {
    std::string name;
    std::int64_t soft = 0;
    std::int64_t hard = 0;
};

/// What is said at `POST /containers/create`; absent members are not sent, so the daemon's defaults hold.
struct container_spec {
    std::string name; ///< "" lets the daemon choose
    std::string image;
    std::string platform; ///< "linux/arm64"; "" for the daemon's own
    std::optional<std::vector<std::string>> entrypoint;
    std::optional<std::vector<std::string>> command;
    text_pairs environment;
    std::string working_dir;
    std::string user;
    text_pairs labels;
    bool open_stdin = false;
    bool healthcheck = true; ///< false turns the image's own off
    std::string stop_signal;
    std::optional<int> stop_timeout; ///< seconds

    std::optional<std::uint64_t> memory;      ///< bytes
    std::optional<std::uint64_t> memory_swap; ///< bytes, memory and swap together
    std::optional<std::uint64_t> nano_cpus;
    std::optional<std::uint64_t> cpu_shares;
    std::optional<std::uint64_t> pids;
    std::optional<std::string> network_mode;
    std::optional<std::string> runtime;
    text_pairs tmpfs; ///< path, options
    std::vector<mount> mounts;
    std::vector<std::string> security_options;
    std::vector<ulimit> ulimits;
    std::string log_driver; ///< "" for the daemon's own
    std::optional<bool> init;
    std::optional<int> oom_score_adj;
};

/// The JSON body of create, with the daemon's exact casing (a misspelt limit is silently dropped:
/// engine-facts A1). AutoRemove is always false, StdinOnce too ("Decided" 6).
[[nodiscard]] std::string create_body(const container_spec& spec);

/// Where a sandbox's container gets what is not in its sandbox_spec.
struct container_place {
    std::string service_uuid;                ///< label of everything that is ours ("Decided" 2)
    std::string slot;                        ///< label, and what a crash is cleaned up by
    std::string name;                        ///< container name, "" for none
    std::string agent_volume;                ///< mounted read-only
    std::string agent_mount;                 ///< where
    std::vector<std::string> agent_argv;     ///< the entrypoint
    std::optional<std::string> listener_dir; ///< host folder of the local fast path, bound read-only
    std::string listener_mount;              ///< where
    std::int64_t open_files = 65'536; ///< hard limit of `nofile`: no more than the daemon may give itself
    bool protect_agent = true;        ///< from the kernel's out-of-memory choice; a rootless daemon can't
};

inline constexpr const char* label_service = "sandboxd.service";
inline constexpr const char* label_slot = "sandboxd.slot";
inline constexpr const char* label_keep = "sandboxd.keep"; ///< a stop leaves the container

/// The container of a sandbox: contract 4.2 with "Decided" 2, 5 and 6 (the agent is the entrypoint and takes
/// the place of init; stdin open and not once; log driver none; nofile limit set; labels).
[[nodiscard]] container_spec container_for(const sandbox_spec& sandbox, const container_place& place);

} // namespace sandboxd::docker
