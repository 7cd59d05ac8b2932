#include "launcher/blocking/cgroup_lock.hpp"

#include "launcher/blocking/files.hpp"

#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <sys/file.h>
#include <system_error>
#include <unistd.h>

namespace sandboxd::launcher::blocking {

namespace {

/// Less than a grace period takes where it is worth avoiding.
constexpr auto between_moves = std::chrono::milliseconds(3);

constexpr std::size_t max_own_cgroups = 64 * 1024;

} // namespace

cgroup_lock::cgroup_lock(const cgroup_layout& layout) {
    const auto text = read_file("/proc/self/cgroup", max_own_cgroups);
    const auto directory = text ? own_cgroup_directory(layout, *text) : std::string();
    if (!directory.empty()) {
        procs_.reset(::open((directory + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC));
    }
    if (!procs_) {
        return;
    }
    sigset_t all;
    sigset_t before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, &before); // signals are the main thread's
    try {
        keeper_ = std::thread(&cgroup_lock::keep, this);
    } catch (const std::system_error&) { // no thread is to be had
        procs_.reset();
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void cgroup_lock::release() {
    {
        const std::lock_guard lock(mutex_);
        released_ = true;
    }
    changed_.notify_one();
    if (keeper_.joinable()) {
        keeper_.join();
        ::flock(procs_.get(), LOCK_UN); // children that were forked meanwhile may have the descriptor
        procs_.reset();
    }
}

void cgroup_lock::keep() {
    std::unique_lock lock(mutex_);
    for (bool one_of_all = false; !released_;) {
        lock.unlock();
        one_of_all = one_of_all || ::flock(procs_.get(), LOCK_EX | LOCK_NB) == 0;
        const bool moved = !one_of_all || ::write(procs_.get(), "0", 1) == 1;
        lock.lock();
        if (!moved) {
            return;
        }
        changed_.wait_for(lock, between_moves, [this] { return released_; });
    }
}

} // namespace sandboxd::launcher::blocking
