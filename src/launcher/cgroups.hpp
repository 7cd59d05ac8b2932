#pragma once

#include "core/fd.hpp"
#include "sandboxd/sandbox.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sandboxd::launcher {

/// Which cgroup hierarchies a host has, and where.
struct cgroup_layout {
    /// Version 1: controller (or "name=x") to mount point. Empty on hosts with version 2 only.
    std::map<std::string, std::string, std::less<>> controllers;
    std::string unified; ///< mount point of version 2, empty without one

    /// Version 2 carries the controllers.
    [[nodiscard]] bool is_unified() const noexcept { return controllers.empty() && !unified.empty(); }
    /// The directory of `path` ("/sandboxd/...") in the hierarchy of a controller; empty when there is none.
    [[nodiscard]] std::string directory(std::string_view controller, std::string_view path) const;
    /// The same in every hierarchy there is, without repeats.
    [[nodiscard]] std::vector<std::string> directories(std::string_view path) const;
};

/// From the text of /proc/self/mountinfo.
[[nodiscard]] cgroup_layout parse_cgroup_layout(std::string_view mountinfo);

/// Of this process's mount namespace.
[[nodiscard]] cgroup_layout read_cgroup_layout();

/// The directory of the process whose /proc/PID/cgroup this is, in one hierarchy: version 2 where there is
/// one. Empty when nothing in it is mounted.
[[nodiscard]] std::string own_cgroup_directory(const cgroup_layout& layout, std::string_view proc_cgroup);

/// "/sandboxd/<first part of the service's UUID>/<slot>"; without a slot, the directory above.
[[nodiscard]] std::string cgroup_path(std::string_view service_uuid, std::string_view slot = {});

/// Reads what one sandbox uses. Kernel files only: a few microseconds each, so it may be called on an I/O
/// thread. Thread-safe.
class cgroup_reader {
public:
    cgroup_reader(const cgroup_layout& layout, std::string_view path);

    /// Processes killed for lack of memory so far; nothing where the kernel doesn't count them.
    [[nodiscard]] std::optional<std::uint64_t> oom_kills() const;

    /// Contract 2.15: usage with the page cache, limit (the host's memory when there is none), processes, and
    /// the per cent of one CPU since the last call, nothing at the first. Nothing at all when the cgroup is
    /// gone.
    [[nodiscard]] std::optional<usage_sample> sample(std::chrono::steady_clock::time_point now);

private:
    [[nodiscard]] std::optional<std::uint64_t> cpu_nanoseconds() const;
    [[nodiscard]] std::optional<std::uint64_t> memory_limit() const;

    bool unified_ = false;
    std::string memory_, pids_, cpu_; ///< directories
    core::unique_fd oom_file_;        ///< kept open: asked before every command
    std::mutex mutex_;
    std::optional<std::uint64_t> last_cpu_;
    std::chrono::steady_clock::time_point last_at_;
};

/// The value of `key` in a file of "key value" lines such as memory.events.
[[nodiscard]] std::optional<std::uint64_t> flat_keyed_value(std::string_view text, std::string_view key);

} // namespace sandboxd::launcher
