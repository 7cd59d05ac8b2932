#pragma once

#include "core/fd.hpp"
#include "launcher/cgroups.hpp"

#include <condition_variable>
#include <mutex>
#include <thread>

namespace sandboxd::launcher::blocking {

/// Keeps the kernel's lock for moves between cgroups at hand, for as long as it lives or until release().
///
/// The first move of a process after a quiet time waits for all CPUs to pass through the scheduler (an RCU
/// grace period, 5 to 30 ms), and moves that follow at once don't wait. A runtime that moves its sandbox has
/// nothing else to do meanwhile. So that wait is taken here, by a thread beside the mounts: it moves this
/// process to where it is. Nothing changes by that, and where it can't be done the runtime waits as it always
/// did.
class cgroup_lock {
public:
    /// Returns at once.
    explicit cgroup_lock(const cgroup_layout& layout);
    ~cgroup_lock() { release(); }
    cgroup_lock(const cgroup_lock&) = delete;
    cgroup_lock& operator=(const cgroup_lock&) = delete;

    /// Waits for a move in progress: one grace period at most.
    void release();

private:
    void keep();

    core::unique_fd procs_;
    std::mutex mutex_;
    std::condition_variable changed_;
    bool released_ = false;
    std::thread keeper_;
};

} // namespace sandboxd::launcher::blocking
