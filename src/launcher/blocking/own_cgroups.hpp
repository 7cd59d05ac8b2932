#pragma once

#include "core/fd.hpp"
#include "launcher/cgroups.hpp"
#include "launcher/runtimes/runtime.hpp"
#include "sandboxd/error.hpp"

#include <string>
#include <vector>

namespace sandboxd::launcher::blocking {

/// The cgroups of one sandbox whose runtime does not make them: made here with their limits, entered by the
/// runtime before it begins, so that all it starts is in them. Removing them is remove_cgroups()'s matter.
class made_cgroups {
public:
    /// `path` as from cgroup_path(); those above it exist. A limit whose controller this host lacks is left
    /// out (check_controllers() says so); errc::start_failed, naming the file, when one can't be set.
    [[nodiscard]] static result<made_cgroups> make(const cgroup_layout& layout, const std::string& path,
                                                   own_cgroups which, const sandbox_limits& limits);

    /// Moves the calling process into all of them; system calls only.
    [[nodiscard]] bool enter() const noexcept;

    /// Sets the limit of processes exactly, once the runtime, which needs some itself, has returned.
    [[nodiscard]] result<void> settle() const;

private:
    std::vector<core::unique_fd> procs_; ///< open for writing
    std::string pids_file_;              ///< empty without a limit
    std::uint64_t pids_ = 0;
};

/// Gives the calling process a mount namespace in which /sys/fs/cgroup is version 2 of cgroups; system calls
/// only.
[[nodiscard]] bool show_plain_cgroup2() noexcept;

} // namespace sandboxd::launcher::blocking
