#pragma once

#include "client/answers.hpp"
#include "sandboxd/sandboxd_workspace.hpp"

namespace sandboxd::client {

/// An open session and how to talk to it. Held by shared_ptr; its functions run on the client's strand.
struct session_link {
    std::shared_ptr<http_client> http;
    std::string id;
    std::string token; ///< the session's, or the service's
    std::vector<std::pair<std::string, std::string>> env;
    std::chrono::milliseconds execute_timeout{0};
    std::chrono::milliseconds request_timeout{30'000};
    bool native_reads = false;
    bool native_writes = false;
    bool native_realpath = false;
    progress sent{};     ///< of one file's content
    progress received{}; ///< the same
};

using link_ptr = std::shared_ptr<const session_link>;

/// What the answer to `/run` says, its flags included.
struct run_answer {
    std::string out;
    std::string err;
    std::optional<int> exit_code;
    bool timed_out = false;
    bool output_limited = false;
    bool oom_killed = false;
    std::optional<std::uint64_t> output_limit;
};

/// POST .../run (contract N13.4). The request waits 10 s longer than the command may take. When it ends
/// without an answer, a cancellation included, the command is stopped.
[[nodiscard]] task<outcome<run_answer>> ask_run(link_ptr link, std::vector<std::string> argv,
                                                run_options options);

/// The same as a result or the failure it means.
[[nodiscard]] task<outcome<command_result>> run_command(link_ptr link, std::vector<std::string> argv,
                                                        run_options options);

/// POST .../files/<op> (contract N13.5). Nothing when the service does not do this one: the shell has to.
[[nodiscard]] task<outcome<std::optional<http_answer>>>
ask_native(link_ptr link, std::string op, std::string path, std::optional<std::string> content = {});

/// The failure that an error status means for a session.
[[nodiscard]] failure refusal(const session_link& link, const http_answer& answer);

} // namespace sandboxd::client
