#include "launcher/blocking/host.hpp"
#include "launcher/blocking/runtime_start.hpp"
#include "launcher/blocking/slots.hpp"
#include "launcher/blocking/staging.hpp"

#include <sys/stat.h>

namespace sandboxd::launcher::blocking {

namespace {

std::optional<std::string> check_agent(const std::string& path) {
    struct stat status{};
    if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode) || (status.st_mode & S_IXOTH) == 0) {
        return "the agent's program " + path +
               " is missing or not executable by everybody: build sandboxd-agent and "
               "keep it beside sandboxd";
    }
    return std::nullopt;
}

/// The one that sessions get which ask for none; the others are missed when they are asked for.
std::optional<std::string> check_runtime(const launcher_options& options, deadline until) {
    const auto& runtime = runc_runtime();
    if (!find_program(program_of(runtime, options))) {
        return "the oci backend starts sandboxes with runc: " + not_installed(runtime, options);
    }
    child_program program;
    program.argv = {program_of(runtime, options), "--version"};
    program.env = program_environment();
    const auto end = run_child(program, until);
    if (!end || end->exit_code != 0) {
        return program.argv[0] + " does not work on this host";
    }
    return std::nullopt;
}

/// Controllers whose limits mean something, and what is missing without them.
std::vector<std::string> check_controllers(const cgroup_layout& cgroups) {
    std::vector<std::string> notes;
    const std::pair<const char*, const char*> wanted[] = {
        {"memory", "memory limits are not enforced, and out-of-memory kills can't be told"},
        {"cpu", "limits of CPU time and CPU shares are not enforced"},
        {"pids", "limits on the number of processes are not enforced"},
    };
    for (const auto& [controller, missing] : wanted) {
        if (!has_controller(cgroups, controller)) {
            notes.push_back("this host has no cgroup controller '" + std::string(controller) +
                            "': " + missing);
        }
    }
    if (has_controller(cgroups, "memory") && !accounts_swap(cgroups)) {
        notes.emplace_back(
            "this kernel does not account swap: memswap_limit is not enforced (boot with swapaccount=1)");
    }
    return notes;
}

} // namespace

host_features probe(const worker_context& context, deadline until) {
    host_features found;
    found.fatal = check_agent(context.options.agent_path);
    if (!found.fatal) {
        found.fatal = check_runtime(context.options, until);
    }
    const auto blocks = uid_ranges::host_blocks(context.options.uid_range);
    if (!found.fatal && blocks.empty()) {
        found.fatal =
            "SANDBOXD_UID_RANGE holds no block of 65536 uids that /etc/subuid and /etc/subgid leave free";
    }
    if (!found.fatal) {
        if (const auto done = try_staging(context, blocks.front()); !done) {
            found.fatal =
                "this host can't put a sandbox's file system together: " + done.error().message +
                ". The oci backend needs Linux 5.19 or later and a state directory (SANDBOXD_STATE_DIR) on "
                "ext4, xfs or btrfs, not on an overlay";
        }
    }
    found.notes = check_controllers(context.cgroups);
    for (const auto* runtime : all_runtimes()) {
        if (find_program(program_of(*runtime, context.options))) {
            auto more = runtime->notes({context.cgroups});
            found.notes.insert(found.notes.end(), more.begin(), more.end());
        }
    }
    if (!has_resource_capability()) {
        found.notes.emplace_back(
            "the service lacks CAP_SYS_RESOURCE: the agent in a sandbox is not protected from the "
            "out-of-memory killer, and a sandbox may open no more files than the service");
    }
    if (!filters_system_calls()) {
        found.notes.emplace_back("this kernel has no system-call filters: none is in force");
    }
    return found;
}

} // namespace sandboxd::launcher::blocking
