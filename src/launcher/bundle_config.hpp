#pragma once

#include "launcher/requests.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sandboxd::launcher {

inline constexpr std::uint32_t ids_per_sandbox = 65'536;

/// Where the agent's binary is seen inside: a file of its own on the private /dev, so that no image can
/// collide with it, and a mount point, so that root inside can't move it.
inline constexpr const char* agent_inside = "/dev/.sandboxd-agent";

/// The same where the agent dials: a directory with its binary and, below `socket`, the service's socket; for
/// root inside only.
inline constexpr const char* door_inside = "/dev/.sandboxd";

/// What a runtime's config.json depends on; paths are those of the mount namespace that the runtime starts
/// in.
struct bundle_config {
    std::string rootfs;
    std::vector<std::string> agent;      ///< program and arguments
    std::vector<std::string> entrypoint; ///< what the agent runs once; empty: nothing
    environment env;
    std::string work_dir;
    std::string hostname;
    std::string agent_source;               ///< empty when the door holds it
    std::optional<std::string> door_source; ///< what lies at door_inside
    std::optional<std::string> workspace_source;
    std::uint32_t uid_base = 0;
    std::string cgroups_path;
    sandbox_limits limits;
    std::uint64_t open_files = 65'536; ///< hard-cases B3-20: loops over all possible descriptors stay short
    bool protect_agent = true;         ///< from the out-of-memory killer; needs CAP_SYS_RESOURCE
    bool limit_swap = true;            ///< the host accounts swap
    bool cgroup_mount = true;          ///< show the sandbox its own cgroup, read-only
    bool device_rules = true;          ///< left to the runtime
    bool filter = true;      ///< the agent loads the system-call filter, where the host's kernel has such
    bool host_kernel = true; ///< false: the runtime is a kernel itself (gVisor), so what confines a process
                             ///< of the host's (user and cgroup namespaces, filter, cgroup) is not its matter
};

/// The text of config.json for an OCI runtime (runtime specification 1.0.2), written from contract 4.2: own
/// user, pid, mount, net, ipc, uts and cgroup namespaces, the capabilities of an ordinary container, no new
/// privileges, masked and read-only paths, limits. The system-call filter is the agent's to load, first of
/// all and for whatever it starts: a runtime compiles it anew for each start, which takes longer than the
/// rest of its work.
[[nodiscard]] std::string runtime_config(const bundle_config& from);

/// The mount options of /tmp for contract 4.2's `size=<tmpfs_size>,exec` and the engine's own nosuid and
/// nodev; errc::invalid for anything but a size and the flags a tmpfs knows.
[[nodiscard]] result<std::vector<std::string>> tmpfs_options(std::string_view tmpfs_size);

} // namespace sandboxd::launcher
