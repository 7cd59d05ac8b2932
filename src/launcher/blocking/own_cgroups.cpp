#include "launcher/blocking/own_cgroups.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <fcntl.h>
#include <sched.h>
#include <string_view>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

namespace sandboxd::launcher::blocking {

namespace {

constexpr std::uint64_t cpu_period_us = 100'000;
/// Processes and threads of the runtime itself while it starts a sandbox.
constexpr std::uint64_t runtime_tasks = 32;

constexpr std::array<const char*, 5> controllers{"memory", "cpu", "cpuacct", "pids", "devices"};

/// What a sandbox may open and make: /dev/null, zero, full, random, urandom, tty and pseudo-terminals; nodes
/// of any kind may be made, which the mounts' nodev keeps from being opened.
constexpr std::array<const char*, 10> allowed_devices{"c *:* m",   "b *:* m",    "c 1:3 rwm", "c 1:5 rwm",
                                                      "c 1:7 rwm", "c 1:8 rwm",  "c 1:9 rwm", "c 5:0 rwm",
                                                      "c 5:2 rwm", "c 136:* rwm"};

result<void> put(const std::string& file, const std::string& text) {
    const core::unique_fd fd(::open(file.c_str(), O_WRONLY | O_CLOEXEC));
    if (!fd || ::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
        auto failure = os_error(file, errno);
        failure.code = errc::start_failed;
        return failure;
    }
    return {};
}

/// The engine's cpu_shares, 2 to 262144, as a weight of version 2, 1 to 10000.
std::uint64_t weight_of(std::uint64_t shares) {
    const auto bounded = std::clamp<std::uint64_t>(shares, 2, 262'144);
    return 1 + (bounded - 2) * 9'999 / 262'142;
}

std::uint64_t quota_of(double cpus) {
    return static_cast<std::uint64_t>(std::floor(cpus * static_cast<double>(cpu_period_us) + 1e-6));
}

/// Files and what to write, in this order.
using settings = std::vector<std::pair<std::string, std::string>>;

bool exists(const std::string& file) {
    return ::access(file.c_str(), F_OK) == 0;
}

settings version_1(const cgroup_layout& layout, const std::string& path, const sandbox_limits& limits) {
    settings all;
    const auto memory = layout.directory("memory", path);
    if (limits.memory_bytes && !memory.empty()) {
        all.emplace_back(memory + "/memory.limit_in_bytes", std::to_string(*limits.memory_bytes));
        if (const auto swap = memory + "/memory.memsw.limit_in_bytes"; exists(swap)) {
            all.emplace_back(swap, std::to_string(limits.memory_swap_bytes.value_or(*limits.memory_bytes)));
        }
    }
    const auto cpu = layout.directory("cpu", path);
    if (limits.cpus && !cpu.empty()) {
        all.emplace_back(cpu + "/cpu.cfs_period_us", std::to_string(cpu_period_us));
        all.emplace_back(cpu + "/cpu.cfs_quota_us", std::to_string(quota_of(*limits.cpus)));
    }
    if (limits.cpu_shares && !cpu.empty()) {
        all.emplace_back(cpu + "/cpu.shares", std::to_string(*limits.cpu_shares));
    }
    if (const auto devices = layout.directory("devices", path); !devices.empty()) {
        all.emplace_back(devices + "/devices.deny", "a");
        for (const char* one : allowed_devices) {
            all.emplace_back(devices + "/devices.allow", one);
        }
    }
    return all;
}

settings version_2(const cgroup_layout& layout, const std::string& path, const sandbox_limits& limits) {
    const auto own = layout.unified + path;
    settings all;
    if (limits.memory_bytes && exists(own + "/memory.max")) {
        all.emplace_back(own + "/memory.max", std::to_string(*limits.memory_bytes));
        const auto both =
            std::max(limits.memory_swap_bytes.value_or(*limits.memory_bytes), *limits.memory_bytes);
        if (exists(own + "/memory.swap.max")) {
            all.emplace_back(own + "/memory.swap.max", std::to_string(both - *limits.memory_bytes));
        }
    }
    if (limits.cpus && exists(own + "/cpu.max")) {
        all.emplace_back(own + "/cpu.max",
                         std::to_string(quota_of(*limits.cpus)) + " " + std::to_string(cpu_period_us));
    }
    if (limits.cpu_shares && exists(own + "/cpu.weight")) {
        all.emplace_back(own + "/cpu.weight", std::to_string(weight_of(*limits.cpu_shares)));
    }
    return all;
}

/// Hands the controllers of version 2 down from the root to the cgroup of `path`; one that is missing stays
/// missing.
void enable_controllers(const cgroup_layout& layout, const std::string& path) {
    for (std::size_t end = 0; end != std::string::npos; end = path.find('/', end + 1)) {
        for (const char* one : {"+memory", "+cpu", "+pids"}) {
            static_cast<void>(put(layout.unified + path.substr(0, end) + "/cgroup.subtree_control", one));
        }
    }
}

std::vector<std::string> directories_of(const cgroup_layout& layout, const std::string& path,
                                        own_cgroups which) {
    std::vector<std::string> all;
    if (!layout.is_unified()) {
        for (const char* one : controllers) {
            if (auto directory = layout.directory(one, path); !directory.empty()) {
                all.push_back(std::move(directory));
            }
        }
    }
    if (which == own_cgroups::every && !layout.unified.empty()) {
        all.push_back(layout.unified + path);
    }
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
}

} // namespace

result<made_cgroups> made_cgroups::make(const cgroup_layout& layout, const std::string& path,
                                        own_cgroups which, const sandbox_limits& limits) {
    made_cgroups made;
    if (which == own_cgroups::none) {
        return made;
    }
    if (layout.is_unified()) {
        enable_controllers(layout, path);
    }
    for (const auto& directory : directories_of(layout, path, which)) {
        if (::mkdir(directory.c_str(), 0755) != 0 && errno != EEXIST) {
            return error{errc::start_failed, os_error(directory, errno).message};
        }
        core::unique_fd procs(::open((directory + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC));
        if (!procs) {
            return error{errc::start_failed, os_error(directory, errno).message};
        }
        made.procs_.push_back(std::move(procs));
    }
    const auto all = layout.is_unified() ? version_2(layout, path, limits) : version_1(layout, path, limits);
    for (const auto& [file, text] : all) {
        if (auto done = put(file, text); !done) {
            return done.error();
        }
    }
    const auto pids = layout.directory("pids", path);
    if (limits.pids && !pids.empty() && exists(pids + "/pids.max")) {
        made.pids_file_ = pids + "/pids.max";
        made.pids_ = *limits.pids;
        if (auto done = put(made.pids_file_, std::to_string(made.pids_ + runtime_tasks)); !done) {
            return done.error();
        }
    }
    return made;
}

bool made_cgroups::enter() const noexcept {
    return std::all_of(procs_.begin(), procs_.end(),
                       [](const core::unique_fd& one) { return ::write(one.get(), "0", 1) == 1; });
}

result<void> made_cgroups::settle() const {
    return pids_file_.empty() ? result<void>() : put(pids_file_, std::to_string(pids_));
}

bool show_plain_cgroup2() noexcept {
    return ::unshare(CLONE_NEWNS) == 0 && ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
           ::mount("cgroup2", "/sys/fs/cgroup", "cgroup2", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) == 0;
}

} // namespace sandboxd::launcher::blocking
