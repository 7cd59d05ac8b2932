#include "launcher/bundle_config.hpp"
#include "launcher/image_reference.hpp"
#include "launcher/runtimes/runtime.hpp"
#include "sandbox/oci/builder.hpp"

#include <array>
#include <string_view>

namespace sandboxd::sandboxes::oci {

namespace {

constexpr std::uint64_t least_memory = 6 * 1024 * 1024; // the engine's own bound: less and nothing starts
constexpr double least_cpus = 0.01;                     // the kernel's least quota, 1 ms of 100

error refuse(std::string why) {
    return {errc::start_failed, std::move(why)};
}

result<void> check_network(const std::optional<std::string>& mode) {
    if (!mode || *mode == "none" || *mode == "bridge") {
        return {}; // whether this host can give a bridge is the launcher's to see
    }
    if (*mode == "host") {
        return refuse(
            "network_mode 'host' would put the sandbox on the host's own network: it is refused with the "
            "oci backend");
    }
    return refuse("network_mode '" + *mode + "' is not known to the oci backend: use 'none' or 'bridge'");
}

result<void> check_runtime(const std::optional<std::string>& name) {
    if (!name || launcher::find_runtime(*name) != nullptr) {
        return {};
    }
    return refuse("oci_runtime '" + *name + "' is not known to the oci backend: it has " +
                  launcher::runtime_names());
}

result<void> check_limits(const sandbox_limits& limits) {
    if (limits.memory_bytes && *limits.memory_bytes < least_memory) {
        return refuse("a memory limit of " + std::to_string(*limits.memory_bytes) +
                      " bytes is too small to start anything: at least 6m");
    }
    if (limits.memory_bytes && limits.memory_swap_bytes && *limits.memory_swap_bytes < *limits.memory_bytes) {
        return refuse(
            "memswap_limit counts memory and swap together: it can't be less than the memory limit");
    }
    if (limits.cpus && !(*limits.cpus >= least_cpus && *limits.cpus <= 10'000)) {
        return refuse("cpus must be at least 0.01");
    }
    if (limits.pids && *limits.pids == 0) {
        return refuse("a pids limit of 0 lets nothing start");
    }
    if (limits.tmpfs_size && !limits.tmpfs_size->empty()) {
        if (const auto options = launcher::tmpfs_options(*limits.tmpfs_size); !options) {
            return refuse(options.error().message);
        }
    }
    return {};
}

bool has_nul(std::string_view text) {
    return text.find('\0') != std::string_view::npos;
}

result<void> check_work_dir(const sandbox_spec& spec) {
    if (has_nul(spec.work_dir) || (!spec.work_dir.empty() && spec.work_dir.front() != '/')) {
        return refuse("the work directory '" + spec.work_dir + "' is no absolute path");
    }
    if (!spec.workspace_dir) {
        return {};
    }
    if (spec.workspace_dir->empty() || spec.workspace_dir->front() != '/' || has_nul(*spec.workspace_dir)) {
        return refuse("the workspace directory '" + *spec.workspace_dir + "' is no absolute path");
    }
    if (spec.work_dir.find_first_not_of("/.") == std::string::npos) {
        return refuse("a workspace can't be mounted on the sandbox's '/': choose another work directory");
    }
    for (const std::string_view top : std::array<std::string_view, 3>{"/proc", "/sys", "/dev"}) {
        const std::string_view path = spec.work_dir;
        if (path.substr(0, top.size()) == top && (path.size() == top.size() || path[top.size()] == '/')) {
            return refuse("a workspace can't be mounted below " + std::string(top) +
                          ": choose another work directory");
        }
    }
    return {};
}

result<void> check_environment(const sandbox_spec& spec) {
    for (const auto& [name, value] : spec.env) {
        if (name.empty() || name.find('=') != std::string::npos || has_nul(name) || has_nul(value)) {
            return refuse("'" + name + "' is no name or has no value that an environment can hold");
        }
    }
    return {};
}

} // namespace

result<void> check_spec(const sandbox_spec& spec) {
    if (const auto image = launcher::parse_image_reference(spec.image); !image) {
        return image.error();
    }
    if (auto ok = check_network(spec.network_mode); !ok) {
        return ok;
    }
    if (auto ok = check_runtime(spec.oci_runtime); !ok) {
        return ok;
    }
    if (auto ok = check_limits(spec.limits); !ok) {
        return ok;
    }
    if (spec.uid && *spec.uid >= launcher::ids_per_sandbox) {
        return refuse("uid " + std::to_string(*spec.uid) + " is beyond the 65536 ids of a sandbox");
    }
    if (auto ok = check_work_dir(spec); !ok) {
        return ok;
    }
    return check_environment(spec);
}

} // namespace sandboxd::sandboxes::oci
