#pragma once

#include "core/fd.hpp"

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

namespace sandboxd::sandboxes::docker_backend {

/// A container's first process as this host sees it.
struct local_process {
    pid_t pid = 0;
    core::unique_fd pidfd;
    std::string cgroup; ///< below the mount of the memory controller, or of version 2
};

/// Nothing when `pid` is no process of that container here: the daemon counts its processes elsewhere, or the
/// container has ended. Proven by the cgroup, which names the container.
[[nodiscard]] std::optional<local_process> find_process(pid_t pid, std::string_view container);

/// From the text of /proc/<pid>/cgroup: the path that matters for memory; nothing without one.
[[nodiscard]] std::optional<std::string> memory_cgroup(std::string_view text);

} // namespace sandboxd::sandboxes::docker_backend
