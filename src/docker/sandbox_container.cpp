#include "docker/container_spec.hpp"

#include <algorithm>

namespace sandboxd::docker {

namespace {

/// Loops over all descriptors would take minutes under an engine's default of 2^30 (hard-cases B3 20).
constexpr std::int64_t soft_files = 1024;
/// The agent dies last of all in its sandbox, and is no burden to the host.
constexpr int agent_oom_score = -100;

bool has_option(const std::string& options, const std::string& wanted) {
    return ("," + options + ",").find("," + wanted + ",") != std::string::npos;
}

/// Contract 4.2: `size=<tmpfs_size>,exec`; nothing when null or empty; exec is added once.
void add_tmpfs(container_spec& into, const std::optional<std::string>& size) {
    if (!size || size->empty()) {
        return;
    }
    std::string options = "size=" + *size;
    if (!has_option(options, "exec")) {
        options += ",exec";
    }
    into.tmpfs.emplace_back("/tmp", std::move(options));
}

void add_limits(container_spec& into, const sandbox_limits& limits) {
    into.memory = limits.memory_bytes;
    if (limits.memory_bytes) {
        into.memory_swap = limits.memory_swap_bytes.value_or(*limits.memory_bytes);
    }
    if (limits.cpus) {
        into.nano_cpus = static_cast<std::uint64_t>(*limits.cpus * 1e9); // truncated, as the contract says
    }
    into.cpu_shares = limits.cpu_shares;
    into.pids = limits.pids;
    add_tmpfs(into, limits.tmpfs_size);
}

mount bound(mount::kind type, std::string source, std::string destination, bool read_only) {
    mount made;
    made.type = type;
    made.source = std::move(source);
    made.destination = std::move(destination);
    made.read_only = read_only;
    return made;
}

} // namespace

container_spec container_for(const sandbox_spec& sandbox, const container_place& place) {
    container_spec made;
    made.name = place.name;
    made.image = sandbox.image;
    made.entrypoint = place.agent_argv;
    made.command.emplace(); // what the image would add as arguments is the agent's business, not its argv
    made.environment = sandbox.env;
    made.working_dir = sandbox.work_dir;
    if (sandbox.uid) {
        made.user = std::to_string(*sandbox.uid) + ":" + std::to_string(*sandbox.uid);
    }
    made.labels = {{label_service, place.service_uuid}, {label_slot, place.slot}};
    if (sandbox.keep != keeping::nothing) {
        made.labels.emplace_back(label_keep, "1");
    }
    made.open_stdin = true;
    made.healthcheck = false; // each check would be a process of the daemon's inside the sandbox
    made.init = false;
    made.network_mode = sandbox.network_mode;
    made.runtime = sandbox.oci_runtime;
    made.security_options = {"no-new-privileges:true"};
    made.ulimits.push_back({"nofile", std::min(soft_files, place.open_files), place.open_files});
    if (place.protect_agent) {
        made.oom_score_adj = agent_oom_score;
    }
    made.log_driver = "none";
    add_limits(made, sandbox.limits);
    if (sandbox.workspace_dir) {
        made.mounts.push_back(bound(mount::kind::bind, *sandbox.workspace_dir, sandbox.work_dir, false));
        made.mounts.back().make_source = true;
    }
    made.mounts.push_back(bound(mount::kind::volume, place.agent_volume, place.agent_mount, true));
    if (place.listener_dir) {
        made.mounts.push_back(bound(mount::kind::bind, *place.listener_dir, place.listener_mount, true));
    }
    return made;
}

} // namespace sandboxd::docker
