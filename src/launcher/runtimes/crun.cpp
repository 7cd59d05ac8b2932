#include "launcher/runtimes/runtime.hpp"

namespace sandboxd::launcher {

namespace {

/// crun knows version 2 of cgroups on /sys/fs/cgroup, or version 1 alone; where both are mounted it refuses
/// to start anything. There it is shown version 2 alone, in a mount namespace of its own, and the launcher
/// sets the limits of version 1.
class crun final : public oci_runtime {
public:
    std::string_view name() const noexcept override { return "crun"; }

    std::vector<std::string> arguments(const runtime_call& call) const override {
        return {"--log",      call.log,      "--root",   call.records,     "--cgroup-manager",
                "cgroupfs",   "run",         "--detach", "--preserve-fds", "1",
                "--pid-file", call.pid_file, "--bundle", call.bundle,      call.slot};
    }

    own_cgroups makes_cgroups(const runtime_host& host) const override {
        return is_mixed(host) ? own_cgroups::version_1 : own_cgroups::none;
    }

    bool wants_plain_cgroup2(const runtime_host& host) const override {
        return !host.cgroups.unified.empty() && host.cgroups.unified != "/sys/fs/cgroup";
    }

    void adapt(bundle_config& bundle, const runtime_host& host) const override {
        if (!is_mixed(host)) {
            return;
        }
        // Version 2 carries none of these controllers, and its device rules are a program that crun may not
        // always load: those of version 1 are in force.
        const auto tmpfs = bundle.limits.tmpfs_size;
        bundle.limits = {};
        bundle.limits.tmpfs_size = tmpfs;
        bundle.device_rules = false;
    }

    /// "2026-01-01T00:00:00.000000Z: the reason".
    std::string complaint(std::string_view log) const override {
        const auto line = last_line(log);
        const auto stamp = line.find("Z: ");
        return std::string(stamp == std::string_view::npos ? line : line.substr(stamp + 3));
    }

private:
    static bool is_mixed(const runtime_host& host) {
        return !host.cgroups.unified.empty() && !host.cgroups.is_unified();
    }
};

} // namespace

const oci_runtime& crun_runtime() noexcept {
    static const crun one;
    return one;
}

} // namespace sandboxd::launcher
