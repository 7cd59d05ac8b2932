#include "launcher/runtimes/runtime.hpp"

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>

namespace sandboxd::launcher {

namespace {

/// A stub process and its thread for each process inside, and what gVisor's own two processes need.
constexpr std::uint64_t host_tasks_per_process = 2;
constexpr std::uint64_t own_host_tasks = 256;

/// gVisor: a kernel of its own, in a process of the host. It is started from within cgroups that the launcher
/// has made (its own code for them is left out), so that limits and removal are the same everywhere.
class runsc final : public oci_runtime {
public:
    std::string_view name() const noexcept override { return "runsc"; }
    agent_door door() const noexcept override { return agent_door::dialled; }
    bool shifts_ids() const noexcept override { return false; }

    std::vector<std::string> arguments(const runtime_call& call) const override {
        // Global flags first. open: a socket of the host that lies in a mount may be connected to, none made.
        return {
            "-network=none", "-platform=ptrace", "-ignore-cgroups", "-host-uds=open", "-root",  call.records,
            "-log",          call.log,           "-log-format",     "json",           "run",    "-detach",
            "-pid-file",     call.pid_file,      "-bundle",         call.bundle,      call.slot};
    }

    /// Its two processes stay and would keep the lock.
    bool may_hold_lock() const noexcept override { return false; }

    own_cgroups makes_cgroups(const runtime_host&) const override { return own_cgroups::every; }

    sandbox_limits own_limits(const sandbox_limits& limits) const override {
        auto own = limits;
        if (own.pids) {
            // What the host sees are gVisor's threads and stubs: a bound for the host, not a count.
            own.pids = std::min(*own.pids, UINT64_MAX / 4) * host_tasks_per_process + own_host_tasks;
        }
        return own;
    }

    void adapt(bundle_config& bundle, const runtime_host&) const override {
        const auto tmpfs = bundle.limits.tmpfs_size;
        bundle.limits = {};
        bundle.limits.tmpfs_size = tmpfs;
        bundle.host_kernel = false;
        bundle.device_rules = false;
        bundle.cgroup_mount = false;
        bundle.protect_agent = false;
    }

    /// One JSON object after the other, without line ends between them.
    std::string complaint(std::string_view log) const override {
        const auto begin = log.rfind("{\"msg\":");
        if (begin == std::string_view::npos) {
            return std::string(last_line(log));
        }
        const auto text = log.substr(begin);
        boost::system::error_code failed;
        const auto value = boost::json::parse(
            boost::json::string_view(
                text.data(), text.rfind('}') == std::string_view::npos ? text.size() : text.rfind('}') + 1),
            failed);
        const auto* const message =
            !failed && value.is_object() ? value.as_object().if_contains("msg") : nullptr;
        return message != nullptr && message->is_string() ? std::string(message->as_string())
                                                          : std::string(last_line(text));
    }

    std::vector<std::string> records(const std::string& slot) const override {
        const auto stem = slot + "_sandbox:" + slot;
        return {stem + ".state", stem + ".lock"};
    }

    std::vector<std::string> notes(const runtime_host&) const override {
        return {"oci_runtime 'runsc': the pids limit is not enforced as a count of processes inside (what "
                "gVisor needs on the host is bounded: beyond that the sandbox ends)",
                "oci_runtime 'runsc': memory limits count gVisor's own memory too, and the sandbox ends when "
                "it exceeds them",
                "oci_runtime 'runsc': the sandbox has no uid range of its own and no system-call filter of "
                "this service: gVisor's kernel is the wall"};
    }
};

} // namespace

const oci_runtime& runsc_runtime() noexcept {
    static const runsc one;
    return one;
}

} // namespace sandboxd::launcher
