#pragma once

#include "docker/engine.hpp"

namespace sandboxd::docker {

struct exec_output {
    std::string out;
    std::string err;
    std::uint64_t dropped = 0; ///< bytes beyond the cap, drained and thrown away
    std::int64_t exit_code = 0;
    bool whole = true; ///< false: the stream was cut, or still open a while after the command had ended
};

struct exec_limits {
    std::size_t output = 1U << 20U; ///< bytes kept of both streams together
    milliseconds total{30'000};     ///< errc::timeout then; the command may live on
    milliseconds look{1000};        ///< a silent stream is compared with inspect this often
    milliseconds after_end{2000};   ///< how long an open stream of an ended command is still read
};

/// One command by the daemon's own exec: create, start, read, exit code. For what the agent can't do (and for
/// diagnosis); costs the daemon about 90 ms. Standard input is not attached. Runs on the caller's executor.
[[nodiscard]] task<answer<exec_output>> run_exec(std::shared_ptr<engine> with, std::string container,
                                                 exec_spec spec, exec_limits limits);

/// The state of an exec whose stream has ended: the daemon may say "running", or no code, for a moment
/// (hard-cases B3 01), so it is asked with a back-off until `limit`. errc::timeout then.
[[nodiscard]] task<answer<exec_state>> ended_exec(std::shared_ptr<engine> with, std::string exec,
                                                  milliseconds limit);

} // namespace sandboxd::docker
