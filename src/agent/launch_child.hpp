#pragma once

#include "agent/descriptor.hpp"
#include "agent/launch.hpp"

#include <atomic>

namespace sandboxd::agent {

/// What the child of a launch needs, and where it leaves what went wrong. It shares its parent's memory until
/// the exec while the parent goes on: so it must not allocate, may not change anything but this, and asks the
/// kernel directly, since `errno` is the parent's too.
struct launch::plan {
    enum class stage : int { setup, identity, directory, exec };

    command what;
    launch_setup setup;
    std::vector<gid_t> groups;
    std::string home;
    std::string_view path;
    descriptor script;
    bool switch_user = false;
    uid_t user = 0;
    gid_t group = 0;
    stage failed_at = stage::setup;
    int error = 0;
    std::atomic<pid_t> in_use = 0; ///< the kernel clears it at the exec, or at the child's end
};

/// Starts the child: its pid, or -1 and errno. There is one at a time, since there is one stack for it.
[[nodiscard]] pid_t start_child(launch::plan& to);

} // namespace sandboxd::agent
