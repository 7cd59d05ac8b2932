#pragma once

// From the agent's end record to what exec and run answer. No I/O.

#include "sandbox/link_stream.hpp"
#include "sandboxd/sandbox.hpp"

namespace sandboxd::sandboxes {

/// Whether the kernel killed for memory while the command ran: asked only when the end looks like it.
[[nodiscard]] bool looks_oom_killed(const end_record& record);

/// A command that could not be started is a result, as in a shell: exit code 127 when there is no such
/// program, else 126, and one sentence of ours, "sandboxd: ...", in the output (for run: in err; contract
/// N19.13). Two kinds are errors: errc::exists (the run id is taken) and unsupported.
[[nodiscard]] result<exec_result> exec_outcome(end_record record, std::string output, bool oom_killed);

/// The same for run. What ran into its deadline or the limit keeps `request.kept_when_stopped` bytes of each
/// stream (contract 3.12.2 and 3.12.3).
[[nodiscard]] result<run_result> run_outcome(end_record record, std::string out, std::string err,
                                             std::size_t kept_when_stopped, bool oom_killed);

} // namespace sandboxd::sandboxes
