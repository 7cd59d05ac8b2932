#pragma once

#include "core/fd.hpp"
#include "sandboxd/error.hpp"

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sandboxd::launcher::blocking {

using deadline = std::chrono::steady_clock::time_point;

inline constexpr const char* usual_path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A program to run to its end. Standard input is at end-of-file; descriptors not named here are closed.
struct child_program {
    std::vector<std::string> argv; ///< the program is looked up in PATH; no shell anywhere
    std::string file;              ///< the program's file where it is known, from find_program()
    std::string directory;         ///< working directory, the launcher's own when empty
    std::vector<std::pair<std::string, std::string>> env; ///< all of it
    int output = -1;                                      ///< both streams go there; /dev/null when negative
    std::vector<int> passed;                              ///< become descriptors 3, 4, ... of the program
    std::vector<int> kept;                                ///< stay open under their own number, above those
    std::function<bool()> prepare; ///< called in the new process before anything else; false: it must not run
    std::function<bool()> watch;   ///< asked again and again by run_child_lines(); false: it is killed
};

struct child_end {
    int exit_code = 0; ///< 128 + signal when one ended it
    bool timed_out = false;
};

/// A program that was started; killed when this goes before its end, and when the caller's process ends.
class child_process {
public:
    /// errc::io when there can be no process.
    [[nodiscard]] static result<child_process> start(const child_program& program);
    child_process(child_process&& other) noexcept;
    child_process& operator=(child_process&&) = delete;
    ~child_process();

    /// Its end, or killed at the deadline. Once. errc::start_failed when there is no such program.
    [[nodiscard]] result<child_end> wait(deadline until);
    /// The same, now when `in_time` is false.
    [[nodiscard]] result<child_end> finish(bool in_time);

    [[nodiscard]] int pidfd() const noexcept { return pidfd_.get(); }
    /// argv[0].
    [[nodiscard]] const std::string& name() const noexcept { return name_; }

private:
    child_process() = default;

    int pid_ = -1; ///< negative when it has been waited for
    core::unique_fd pidfd_;
    std::string name_;
    bool prepares_ = false;
};

/// Runs it; killed at the deadline and when the caller's process ends. errc::start_failed when there is no
/// such program.
[[nodiscard]] result<child_end> run_child(const child_program& program, deadline until);

/// The same, with what it prints handed over line by line (cut at 4 KiB) as it comes.
[[nodiscard]] result<child_end> run_child_lines(child_program program, deadline until,
                                                const std::function<void(std::string_view)>& line);

/// Until something can be read, or the other end is gone; false at the deadline.
[[nodiscard]] bool wait_readable(int fd, deadline until);

/// The file of a program of that name: in PATH (or named by a path), and may be run.
[[nodiscard]] std::optional<std::string> find_program(const std::string& name);

} // namespace sandboxd::launcher::blocking
