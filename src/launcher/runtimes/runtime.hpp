#pragma once

// runtimes: what differs between the OCI runtimes that a sandbox may be started with ("Decided" 16 of
// design.md): one small file each behind this interface. Pure: the calls themselves are made in blocking/.

#include "launcher/bundle_config.hpp"
#include "launcher/cgroups.hpp"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sandboxd::launcher {

/// What this host can, as far as a runtime cares.
struct runtime_host {
    const cgroup_layout& cgroups;
};

/// One call. Paths are those of the mount namespace that the runtime starts in.
struct runtime_call {
    std::string records; ///< the directory of this runtime's own records
    std::string bundle;
    std::string pid_file;
    std::string log;
    std::string slot;
};

/// How the agent inside and the service meet.
enum class agent_door {
    handed_in, ///< the agent accepts on a listening socket that it inherits as descriptor 3
    dialled    ///< the agent connects to a socket in a directory that it sees read-only
};

/// Which cgroups the launcher makes and fills itself, because the runtime doesn't; the runtime is called from
/// within them.
enum class own_cgroups { none, version_1, every };

class oci_runtime {
public:
    virtual ~oci_runtime() = default;

    /// As in `oci_runtime`; also the program's and the Debian package's name.
    [[nodiscard]] virtual std::string_view name() const noexcept = 0;
    [[nodiscard]] virtual agent_door door() const noexcept { return agent_door::handed_in; }
    /// Root inside is an unprivileged uid outside, from a range of the sandbox's own.
    [[nodiscard]] virtual bool shifts_ids() const noexcept { return true; }
    /// What follows the program's name.
    [[nodiscard]] virtual std::vector<std::string> arguments(const runtime_call& call) const = 0;
    /// The program closes or marks all that it inherits, so that the slot's lock may be handed to it.
    [[nodiscard]] virtual bool may_hold_lock() const noexcept { return true; }

    /// The program needs milliseconds before it reads its configuration, and does nothing before that: it is
    /// called before the sandbox is prepared and waits at that file.
    [[nodiscard]] virtual bool gets_ready_slowly() const noexcept { return false; }

    [[nodiscard]] virtual own_cgroups makes_cgroups(const runtime_host&) const { return own_cgroups::none; }
    /// It must see version 2 alone on /sys/fs/cgroup.
    [[nodiscard]] virtual bool wants_plain_cgroup2(const runtime_host&) const { return false; }
    /// The limits as the launcher sets them where it makes the cgroups.
    [[nodiscard]] virtual sandbox_limits own_limits(const sandbox_limits& limits) const { return limits; }
    /// Takes what it can't do, or what the launcher does in its place, out of a bundle.
    virtual void adapt(bundle_config&, const runtime_host&) const {}

    /// The reason of a failure, from what it has written to its log; empty when that says nothing.
    [[nodiscard]] virtual std::string complaint(std::string_view log) const = 0;
    /// Names in its records' directory of what it remembers of a sandbox.
    [[nodiscard]] virtual std::vector<std::string> records(const std::string& slot) const { return {slot}; }
    /// What its sandboxes lack on this host, in sentences for notes().
    [[nodiscard]] virtual std::vector<std::string> notes(const runtime_host&) const { return {}; }
};

/// All there are, the default first.
[[nodiscard]] std::span<const oci_runtime* const> all_runtimes() noexcept;

/// Null for a name without an adapter.
[[nodiscard]] const oci_runtime* find_runtime(std::string_view name) noexcept;

/// "runc, crun, runsc".
[[nodiscard]] std::string runtime_names();

/// The last line of a log, without its end; empty for an empty log.
[[nodiscard]] std::string_view last_line(std::string_view log) noexcept;

// The adapters, one file each.
[[nodiscard]] const oci_runtime& runc_runtime() noexcept;
[[nodiscard]] const oci_runtime& crun_runtime() noexcept;
[[nodiscard]] const oci_runtime& runsc_runtime() noexcept;

} // namespace sandboxd::launcher
