#pragma once

#include "core/spawn.hpp"
#include "real_agent.hpp"
#include "support/run.hpp"

#include <functional>
#include <list>

namespace sandboxd::test {

/// A sandbox over the real agent, on a context of one thread.
struct agent_fixture {
    agent_fixture();
    /// Requires that nothing of the sandbox is left in the context.
    ~agent_fixture();

    boost::asio::io_context context;
    core::gate background;
    sandboxes::agent_sandbox_options options;
    std::shared_ptr<real_agent> host;
    std::shared_ptr<door> way;
    std::shared_ptr<sandbox> box;

    result<exec_result> exec(std::string command, std::size_t cap = 100'000,
                             std::chrono::milliseconds timeout = std::chrono::seconds(20));
    result<run_result> run(std::vector<std::string> argv,
                           std::chrono::milliseconds timeout = std::chrono::seconds(20),
                           std::size_t limit = 10'485'760);

    /// Starts in the background; the answer is there when `to` holds a value.
    void start(std::string command, std::optional<result<exec_result>>& to, std::string id = fresh_id(),
               std::chrono::milliseconds timeout = std::chrono::seconds(20));
    /// Runs the context until `done` or a generous limit; requires the former.
    void until(const std::function<bool()>& done);

    /// Another sandbox over the same agent, as a restarted service makes it. What the old one still runs
    /// never gets an answer before the end of the test.
    void restart();

    /// A command that runs until let_go(), then does `more`.
    [[nodiscard]] std::string held(const std::string& more) const;
    void let_go();

    /// Processes below the agent that are not its own.
    [[nodiscard]] int descendants() const;

    /// For answers that come after the test's own end, if ever.
    std::list<std::optional<result<exec_result>>> unanswered;

private:
    void open(bool adopted);
    std::string flag_; ///< a file: its existence lets held commands go
};

[[nodiscard]] exec_request exec_of(std::string command, std::size_t cap, std::chrono::milliseconds timeout);

} // namespace sandboxd::test
