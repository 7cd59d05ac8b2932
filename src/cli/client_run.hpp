#pragma once

#include "cli/service.hpp"

namespace sandboxd::cli {

/// Does one of the commands that are clients: prints, and answers the exit status.
[[nodiscard]] int run_client(const client_call& call);

// The commands. Each answers the exit status, or the failure that is told on standard error with status 1
// (exec: 125).
using status_task = task<client::outcome<int>>;
[[nodiscard]] status_task open_session(const service& of, const client_call& call);
[[nodiscard]] status_task exec_program(const service& of, const client_call& call);
[[nodiscard]] status_task copy_files(const service& of, const client_call& call);
[[nodiscard]] status_task list_files(const service& of, const client_call& call);
[[nodiscard]] status_task remove_things(const service& of, const client_call& call);
[[nodiscard]] status_task list_sessions(const service& of, const client_call& call);
[[nodiscard]] status_task print_events(const service& of, const client_call& call);

/// A number of seconds above 0, at most a year.
[[nodiscard]] client::outcome<std::chrono::milliseconds>
seconds_in(const client_call& call, std::string_view flag, std::chrono::milliseconds otherwise);

/// One value as a line.
[[nodiscard]] std::string json_line(const boost::json::value& value);

inline constexpr int exit_cannot_run = 125;
inline constexpr int exit_timed_out = 124;

} // namespace sandboxd::cli
