#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace sandboxd::agent {

struct process {
    pid_t pid = 0;
    pid_t parent = 0;
    std::uint64_t started = 0; ///< ticks since boot: with the pid, an identity
    char state = 0;            ///< Z: a zombie
};

/// A line of /proc/PID/stat; the name in it may hold anything.
[[nodiscard]] std::optional<process> parse_stat(std::string_view line);

/// Every process there is. Empty when /proc can't be read.
[[nodiscard]] std::vector<process> list_processes();

/// All below `root` in `all`, without `root` and without `except` (sorted) and what is below those.
[[nodiscard]] std::vector<process> descendants(std::vector<process> all, pid_t root,
                                               const std::vector<pid_t>& except = {});

/// Processes that get no signal: alone, or with all that is below them.
struct spared {
    std::vector<pid_t> pids; ///< sorted
    bool with_descendants = true;
};

/// Signals the processes below one process, each at most once per signal while it lives: what forks away
/// meanwhile is found in the next round, since whatever loses its parent comes to the subreaper, the root.
class tree_signaller {
public:
    /// One round: sends `signal` to all below `root` that did not get it yet (SIGKILL: to all). Returns how
    /// many live.
    std::size_t round(pid_t root, int signal, const spared& spare = {});

private:
    std::vector<process> told_;
};

} // namespace sandboxd::agent
