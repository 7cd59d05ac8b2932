#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sandboxd::agent {

struct process {
    pid_t pid = 0;
    pid_t parent = 0;
    pid_t session = 0;
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

/// How a command's processes are told where the kernel has no subreapers (gVisor): what has lost its parent
/// comes to `keeper` there, and belongs to the command when it is in its session or has its mark, a whole
/// `NAME=value`, in its environment. A process that hides both on purpose is not found.
struct stray_signs {
    pid_t keeper = 0; ///< 0: there are subreapers, so that nothing strays
    pid_t session = 0;
    std::string mark;
};

/// Signals the processes below one process, each at most once per signal while it lives: what forks away
/// meanwhile is found in the next round, since whatever loses its parent comes to the subreaper, the root.
class tree_signaller {
public:
    tree_signaller() = default;
    explicit tree_signaller(stray_signs signs) : signs_(std::move(signs)) {}

    /// One round: sends `signal` to all below `root` that did not get it yet (SIGKILL: to all). Returns how
    /// many live.
    std::size_t round(pid_t root, int signal, const spared& spare = {});

private:
    void add_strays(const std::vector<process>& all, pid_t root, std::vector<process>& found) const;
    [[nodiscard]] bool was_told(const process& one) const;

    stray_signs signs_;
    std::vector<process> told_;
};

} // namespace sandboxd::agent
