#pragma once

#include "core/fd.hpp"
#include "sandboxd/sandbox.hpp"

#include <boost/asio/any_io_executor.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sandboxd::docker {

/// A program started by us (ssh, a credential helper). Destroying it kills and reaps it; nothing is left.
class child {
public:
    child(int pid, core::unique_fd pidfd, core::unique_fd complaints, bool own_group);
    ~child();
    child(const child&) = delete;
    child& operator=(const child&) = delete;

    /// Its exit code (128 + signal when killed), once; nothing when it still runs after `limit`.
    [[nodiscard]] task<std::optional<int>> wait(std::chrono::milliseconds limit);

    /// What it has written to standard error so far, as one line of at most 1 000 bytes.
    [[nodiscard]] std::string complaint();

    /// Ends it without waiting: TERM, then KILL after `grace`; reaped on `executor`.
    static void retire(const boost::asio::any_io_executor& executor, std::shared_ptr<child> process,
                       std::chrono::milliseconds grace);

    [[nodiscard]] int pid() const noexcept { return pid_; }

private:
    struct retirement;

    [[nodiscard]] std::optional<int> reap() noexcept;
    void signal(int number) const noexcept;

    int pid_;
    core::unique_fd pidfd_;
    core::unique_fd complaints_;
    bool own_group_; ///< signals go to what it has started, too
    std::string said_;
    bool reaped_ = false;
};

struct started_program {
    core::unique_fd socket; ///< its standard input and output
    std::shared_ptr<child> process;
    core::unique_fd lifeline; ///< of one with a group of its own: closed by us, also by our death
};

/// Starts argv[0], looked up in PATH, with our environment; `own_group` for programs that start others, which
/// are ended with them: its descriptor 3 is at end-of-file once `lifeline` is closed. errc::io when it can't
/// be started.
[[nodiscard]] result<started_program> start_program(const std::vector<std::string>& argv,
                                                    bool own_group = false);

} // namespace sandboxd::docker
