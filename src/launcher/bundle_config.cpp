#include "launcher/bundle_config.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <cmath>

namespace sandboxd::launcher {

namespace json = boost::json;

namespace {

constexpr int cpu_period_us = 100'000;
constexpr int agent_oom_score =
    -100; // the agent dies last of all in its sandbox, and is no burden to the host

json::array list(std::initializer_list<const char*> items) {
    json::array made;
    for (const char* item : items) {
        made.emplace_back(item);
    }
    return made;
}

json::array list(const std::vector<std::string>& items) {
    json::array made;
    for (const auto& item : items) {
        made.emplace_back(item);
    }
    return made;
}

json::object mount(const char* destination, const char* type, const char* source, json::array options) {
    return {
        {"destination", destination}, {"type", type}, {"source", source}, {"options", std::move(options)}};
}

std::vector<std::string> command_line(const bundle_config& from) {
    auto words = from.agent;
    if (from.filter && from.host_kernel) {
        words.emplace_back("--filter");
    }
    if (!from.entrypoint.empty()) {
        words.emplace_back("--entrypoint");
        words.insert(words.end(), from.entrypoint.begin(), from.entrypoint.end());
    }
    return words;
}

json::object process(const bundle_config& from) {
    json::array env;
    for (const auto& [name, value] : from.env) {
        env.emplace_back(name + "=" + value);
    }
    const auto capabilities =
        list({"CAP_AUDIT_WRITE", "CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID", "CAP_KILL",
              "CAP_MKNOD", "CAP_NET_BIND_SERVICE", "CAP_NET_RAW", "CAP_SETFCAP", "CAP_SETGID", "CAP_SETPCAP",
              "CAP_SETUID", "CAP_SYS_CHROOT"});
    json::array limits;
    limits.push_back(
        json::object{{"type", "RLIMIT_NOFILE"}, {"hard", from.open_files}, {"soft", from.open_files}});
    // A core dump would run the host's handler, as the host's root, on bytes of the sandbox.
    limits.push_back(json::object{{"type", "RLIMIT_CORE"}, {"hard", 0}, {"soft", 0}});
    json::object made{
        {"terminal", false},
        {"user", {{"uid", 0}, {"gid", 0}}},
        {"args", list(command_line(from))},
        {"env", std::move(env)},
        {"cwd", from.work_dir},
        {"capabilities",
         {{"bounding", capabilities}, {"effective", capabilities}, {"permitted", capabilities}}},
        {"rlimits", std::move(limits)},
        {"noNewPrivileges", true},
    };
    if (from.protect_agent) {
        made["oomScoreAdj"] = agent_oom_score;
    }
    return made;
}

json::array mounts(const bundle_config& from) {
    json::array all;
    all.push_back(mount("/proc", "proc", "proc", list({"nosuid", "noexec", "nodev"})));
    all.push_back(mount("/dev", "tmpfs", "tmpfs",
                        list({"nosuid", "noexec", "strictatime", "mode=755", "size=65536k"})));
    all.push_back(mount("/dev/pts", "devpts", "devpts",
                        list({"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"})));
    all.push_back(
        mount("/dev/shm", "tmpfs", "shm", list({"nosuid", "noexec", "nodev", "mode=1777", "size=65536k"})));
    if (from.host_kernel) {
        all.push_back(mount("/dev/mqueue", "mqueue", "mqueue", list({"nosuid", "noexec", "nodev"})));
    }
    all.push_back(mount("/sys", "sysfs", "sysfs", list({"nosuid", "noexec", "nodev", "ro"})));
    if (from.cgroup_mount) {
        all.push_back(mount("/sys/fs/cgroup", "cgroup", "cgroup", list({"nosuid", "noexec", "nodev", "ro"})));
    }
    if (from.limits.tmpfs_size && !from.limits.tmpfs_size->empty()) {
        if (const auto options = tmpfs_options(*from.limits.tmpfs_size)) {
            all.push_back(mount("/tmp", "tmpfs", "tmpfs", list(*options)));
        }
    }
    if (from.workspace_source) {
        all.push_back(mount(from.work_dir.c_str(), "bind", from.workspace_source->c_str(),
                            list({"bind", "rw", "nosuid", "nodev"})));
    }
    if (!from.agent_source.empty()) {
        all.push_back(
            mount(agent_inside, "bind", from.agent_source.c_str(), list({"bind", "ro", "nosuid", "nodev"})));
    }
    if (from.door_source) {
        all.push_back(
            mount(door_inside, "bind", from.door_source->c_str(), list({"rbind", "ro", "nosuid", "nodev"})));
    }
    return all;
}

json::object resources(const bundle_config& from) {
    json::object made;
    if (from.device_rules) {
        made["devices"] = json::array{json::object{{"allow", false}, {"access", "rwm"}}};
    }
    const auto& limits = from.limits;
    if (limits.memory_bytes) {
        json::object memory{{"limit", static_cast<std::int64_t>(*limits.memory_bytes)}};
        if (from.limit_swap) {
            memory["swap"] =
                static_cast<std::int64_t>(limits.memory_swap_bytes.value_or(*limits.memory_bytes));
        }
        made["memory"] = std::move(memory);
    }
    json::object cpu;
    if (limits.cpus) {
        cpu["period"] = cpu_period_us;
        cpu["quota"] = static_cast<std::int64_t>(std::floor(*limits.cpus * cpu_period_us + 1e-6));
    }
    if (limits.cpu_shares) {
        cpu["shares"] = *limits.cpu_shares;
    }
    if (!cpu.empty()) {
        made["cpu"] = std::move(cpu);
    }
    if (limits.pids) {
        made["pids"] = json::object{{"limit", static_cast<std::int64_t>(*limits.pids)}};
    }
    return made;
}

json::object linux_part(const bundle_config& from) {
    json::array namespaces;
    for (const char* type : {"pid", "mount", "network", "ipc", "uts"}) {
        namespaces.push_back(json::object{{"type", type}});
    }
    json::object made{
        {"maskedPaths", list({"/proc/acpi", "/proc/asound", "/proc/interrupts", "/proc/kcore", "/proc/keys",
                              "/proc/latency_stats", "/proc/sched_debug", "/proc/scsi", "/proc/timer_list",
                              "/proc/timer_stats", "/sys/devices/virtual/powercap", "/sys/firmware"})},
        // With cgroup v1 and a namespace for it, runc leaves the tmpfs that holds the hierarchies writable,
        // and without a size.
        {"readonlyPaths",
         list({"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger", "/sys/fs/cgroup"})},
    };
    if (from.host_kernel) {
        namespaces.push_back(json::object{{"type", "user"}});
        namespaces.push_back(json::object{{"type", "cgroup"}});
        const json::array ids{
            json::object{{"containerID", 0}, {"hostID", from.uid_base}, {"size", ids_per_sandbox}}};
        made["uidMappings"] = ids;
        made["gidMappings"] = ids;
        made["cgroupsPath"] = from.cgroups_path;
        made["resources"] = resources(from);
    }
    made["namespaces"] = std::move(namespaces);
    return made;
}

bool is_size(std::string_view text) {
    if (!text.empty() && std::string_view("kKmMgG%").find(text.back()) != std::string_view::npos) {
        text.remove_suffix(1);
    }
    return !text.empty() && text.size() <= 18 &&
           text.find_first_not_of("0123456789") == std::string_view::npos;
}

bool is_octal(std::string_view text) {
    return !text.empty() && text.size() <= 4 && text.find_first_not_of("01234567") == std::string_view::npos;
}

bool is_known(std::string_view option) {
    for (const char* flag : {"exec", "noexec", "nosuid", "nodev", "noatime", "relatime", "rw", "ro"}) {
        if (option == flag) {
            return true;
        }
    }
    if (option.substr(0, 5) == "size=" || option.substr(0, 10) == "nr_inodes=") {
        return is_size(option.substr(option.find('=') + 1));
    }
    return option.substr(0, 5) == "mode=" && is_octal(option.substr(5));
}

} // namespace

result<std::vector<std::string>> tmpfs_options(std::string_view tmpfs_size) {
    std::vector<std::string> options{"nosuid", "nodev", "mode=1777"};
    const std::string text = "size=" + std::string(tmpfs_size);
    for (std::size_t at = 0; at <= text.size();) {
        const auto end = std::min(text.find(',', at), text.size());
        auto option = text.substr(at, end - at);
        at = end + 1;
        if (option.empty()) {
            continue;
        }
        if (!is_known(option)) {
            return error{errc::invalid, "tmpfs_size '" + std::string(tmpfs_size) + "': '" + option +
                                            "' is no size such as 64m and no option of a tmpfs"};
        }
        options.push_back(std::move(option));
    }
    if (std::find(options.begin(), options.end(), "exec") == options.end()) {
        options.emplace_back("exec");
    }
    return options;
}

std::string runtime_config(const bundle_config& from) {
    json::object config{
        {"ociVersion", "1.0.2"},
        {"process", process(from)},
        {"root", {{"path", from.rootfs}, {"readonly", false}}},
        {"hostname", from.hostname},
        {"mounts", mounts(from)},
        {"linux", linux_part(from)},
    };
    return json::serialize(config);
}

} // namespace sandboxd::launcher
