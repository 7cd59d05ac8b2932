#pragma once

#include "launcher/cgroups.hpp"

namespace sandboxd::launcher::blocking {

/// CAP_SYS_RESOURCE: without it out-of-memory scores can't be lowered nor hard limits raised.
[[nodiscard]] bool has_resource_capability();

/// Swap can be limited apart from memory.
[[nodiscard]] bool accounts_swap(const cgroup_layout& cgroups);

/// The kernel has filters of system calls.
[[nodiscard]] bool filters_system_calls();

/// Version 1: mounted; version 2: in the root's cgroup.controllers.
[[nodiscard]] bool has_controller(const cgroup_layout& cgroups, std::string_view controller);

} // namespace sandboxd::launcher::blocking
