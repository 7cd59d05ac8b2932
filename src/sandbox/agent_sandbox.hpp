#pragma once

// The sandbox that every backend with an agent has: commands over a link, the rest from its sandbox_host.

#include "sandbox/agent_link.hpp"
#include "sandbox/file_operations.hpp"
#include "sandbox/sandbox_host.hpp"

namespace sandboxd::sandboxes {

struct agent_sandbox_options {
    link_options link;
    file_options files;
    std::chrono::milliseconds open_within{10'000}; ///< the agent's first answer
    std::chrono::milliseconds answer_grace{3'000}; ///< after a command's deadline: overdue then
    std::chrono::milliseconds stop_grace{2'500};   ///< of stop(), before the kill: the agent takes 2 s
    std::chrono::milliseconds stop_run_within{5'000};
};

/// How exec and run behave beyond sandbox.hpp:
/// - The agent keeps the deadline. Without an end `answer_grace` later the answer is what there is by then,
///   exit_status::overdue (errc::timeout for what never reached the agent), and the tree is stopped; what
///   can't be stopped 30 s later takes the sandbox down with it ("Decided" 8).
/// - A channel that is cut is invisible: the answer comes over the next one. The sandbox's death is
///   errc::gone at once; error::may_have_started is false when no `start` had been sent.
/// - What could not be started: outcome.hpp.
/// - Cancelling the awaiting coroutine leaves the command running (contract 3.12.8).

/// The factory that a backend gets. Links run on strands of `executor`; `background` counts what goes on in
/// them and outlives the sandboxes: destroy or stop these, then await drained().
[[nodiscard]] agent_sandbox_factory create_agent_sandbox_factory(boost::asio::any_io_executor executor,
                                                                 core::gate& background,
                                                                 agent_sandbox_options options = {});

} // namespace sandboxd::sandboxes
