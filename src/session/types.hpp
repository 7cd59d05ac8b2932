#pragma once

// Requests and answers of the session registry: plain data, no JSON, no HTTP.

#include "sandboxd/config.hpp"
#include "sandboxd/sandbox.hpp"
#include "store/session_store.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sandboxd::session {

/// Contract 1.4.3. Ids, tenants and aliases have passed their patterns.
struct open_request {
    std::optional<std::string> session_id;
    std::optional<std::string> runtime;
    std::optional<std::string> tenant;
    bool reuse = false;
    bool attach = false;
};

/// Contract 1.2.2.
struct session_info {
    std::string id;
    std::string runtime;
    std::optional<std::string> tenant;
    bool alive = false;
    bool hibernated = false;
    double created_at = 0;    ///< Unix seconds
    double last_activity = 0; ///< Unix seconds
    double idle_seconds = 0;
    std::optional<usage_sample> usage;
};

struct opened {
    session_info session;
    std::string token;
    bool created = false;   ///< false: an open session was found (reuse, attach)
    bool generated = false; ///< the id is ours: call registry::undelivered when the answer can't be sent
};

struct listing {
    std::vector<session_info> sessions; ///< in the order of opening
    std::optional<std::int64_t> limit;
    std::optional<std::int64_t> open_limit;
    std::optional<std::int64_t> tenant_limit;
};

using event = store::event_record;

struct event_page {
    std::vector<event> events;
    std::int64_t latest_seq = 0;
};

/// Contract 1.3.2, and two numbers of our own.
struct health {
    std::int64_t sessions = 0; ///< resident, dead ones included
    std::optional<std::int64_t> limit;
    std::int64_t open_sessions = 0; ///< hibernated ones included
    std::optional<std::int64_t> open_limit;
    std::vector<std::string> runtimes; ///< sorted aliases
    std::int64_t running_commands = 0;
    std::int64_t quarantined = 0;        ///< sandboxes whose stop has not answered
    std::optional<std::string> degraded; ///< sandbox_builder::degraded()
};

/// Is the client of a command still there? Asked once before a command that had to wait is started (N16.21,
/// design.md "Decided" 23); empty where nobody can tell.
using client_probe = std::function<task<bool>()>;

/// Contract 1.5.4 exec.
struct exec_command {
    std::string command;
    /// Absent or 0: the service's ceiling. Negative: exit 125, as the `timeout` utility has it, and nothing
    /// runs. Above the ceiling: the ceiling.
    std::optional<std::int64_t> timeout_seconds;
};

/// How a command ended, as it is shown (contract 3.2, 3.12, design.md "Decided" 12).
struct command_end {
    std::optional<int> exit_code; ///< 128 + N for signal N
    std::optional<int> signal;
    bool timed_out = false;
    bool oom_killed = false;
    std::chrono::microseconds duration{0}; ///< from the call, waiting included
    std::uint64_t output_dropped_bytes = 0;
};

struct exec_answer {
    std::string output; ///< raw bytes
    bool truncated = false;
    command_end end;
};

/// Contract 1.5.5.
struct run_command {
    std::string run_id;
    std::vector<std::string> argv;
    std::vector<std::pair<std::string, std::string>> env;
    std::optional<double> timeout_seconds; ///< > 0; absent or above the ceiling: the ceiling
};

struct run_answer {
    std::string out; ///< raw bytes
    std::string err;
    bool output_limited = false;
    std::optional<std::int64_t> output_limit; ///< bytes, only when output_limited
    command_end end;
};

/// A change of the policy as the text that the store and the overrides file hold: that of `PUT /policy`.
struct policy_text {
    /// errc::invalid with a sentence; unknown fields are refused.
    std::function<result<policy_change>(const std::string& text)> parse;
    std::function<std::string(const policy_change& change)> print;
};

/// What the registry has to know of runtimes; the composition root fills it from the config room.
struct runtime_source {
    std::vector<std::string> aliases; ///< sorted
    /// The entry of an allowed alias as JSON, kept with the session so that a later heal builds the same.
    std::function<result<std::string>(const settings& policy, const std::string& alias)> entry;
    /// The sandbox such an entry stands for, under the ceilings in force now; all but `session_id`,
    /// `workspace_dir` and `keep`. errc::start_failed with a text fit for the 502.
    std::function<result<sandbox_spec>(const settings& policy, const std::string& alias,
                                       const std::string& entry)>
        spec;
};

} // namespace sandboxd::session
