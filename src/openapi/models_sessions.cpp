#include "openapi/models.hpp"
#include "wire/answers.hpp"
#include "wire/requests.hpp"

namespace sandboxd::openapi {

void add_session_models(schema_book& book) {
    using enum direction;
    book.add<wire::session_usage>(
        "SessionUsage", answer, "What a sandbox uses now. A figure that can't be told is null.",
        {{"memory_bytes", "Memory in use, page cache included."},
         {"memory_limit_bytes", "Its ceiling."},
         {"cpu_percent", "Of one core, since the sample before; null at the first one.", R"({"minimum":0})"},
         {"pids", "Processes and threads."}});
    book.add<wire::session_info>("SessionInfo", answer, "A session, as listings and inspections show it.",
                                 {{"session_id", "Its id."},
                                  {"runtime", "The alias of the runtime it was opened with."},
                                  {"tenant", "The label it counts under, if any."},
                                  {"alive", "The sandbox can take commands; false while hibernated."},
                                  {"state", "Whether a sandbox is there, or was put to sleep to make room.",
                                   R"({"enum":["running","hibernated"]})"},
                                  {"created_at", "Unix time in seconds."},
                                  {"last_activity", "Unix time of the last operation, or of falling asleep."},
                                  {"idle_seconds", "Time since then.", R"({"minimum":0})"},
                                  {"usage", "Only when asked for."}});
    book.add<wire::session_created>("SessionCreated", answer, "An open session and the token that opens it.",
                                    {{"session", "The session."},
                                     {"token", "For `X-Sandbox-Token`: good for this session only. Stays the "
                                               "same for as long as the session is open."}});
    book.add<wire::session_list>("SessionList", answer,
                                 "All open sessions, in the order they were opened in.",
                                 {{"sessions", "Sleeping ones included."},
                                  {"limit", "How many may be resident; null: no ceiling."},
                                  {"open_limit", "How many may be open, sleeping ones included."},
                                  {"tenant_limit", "How many one tenant may have open."}});
    book.add<wire::open_body>(
        "OpenSessionRequest", request, "Unknown members are ignored.",
        {{"session_id", "The id wanted; one is made up when there is none."},
         {"runtime", "One of the allowed aliases; the default runtime when there is none."},
         {"tenant", "A label: sessions of one label are counted together against a ceiling."},
         {"reuse", "An open session of this id is answered instead of refused; a sleeping one wakes."},
         {"attach", "As `reuse`, and a new session is only made where files of this id were kept."}});
    book.add<wire::session_event>(
        "SessionEvent", answer,
        "One operation, told when it had ended. Never what it read, wrote or printed.",
        {{"seq", "1, 2, 3...; never used twice in one session."},
         {"at", "Unix time of its end."},
         {"op", "Which operation: `exec`, `run`, `read`, `write`..."},
         {"target", "Command, path or pattern; cut after 200 characters."},
         {"ok", "It did what was asked: exit code 0, no error."},
         {"detail", "`exit 0`, `12 bytes`, `not found`..., or the error."},
         {"duration_ms", "From the request's arrival to its end.", R"({"minimum":0})"}});
    book.add<wire::session_events>("SessionEvents", answer, "A part of a session's log; 200 events are kept.",
                                   {{"events", "Those after the number asked for, oldest first."},
                                    {"latest_seq", "The highest number ever given; 0 at first."}});
}

void add_command_models(schema_book& book) {
    using enum direction;
    constexpr std::string_view code = "Its exit code; null when it ended otherwise.";
    constexpr std::string_view signal = "The signal that ended it, when that was not ours.";
    constexpr std::string_view memory = "It was ended because the sandbox was out of memory.";
    constexpr std::string_view lasted = "How long it ran.";
    constexpr std::string_view dropped = "Bytes it printed beyond what is kept.";
    constexpr std::string_view whole_number = R"({"minimum":0})";
    book.add<wire::exec_body>(
        "ExecRequest", request, "A line for `sh -c`.",
        {{"command", "Run in the work directory, standard input empty. Its exit code 124 means timed out."},
         {"timeout_seconds", "At most the service's ceiling, which is also the default. 0: only the ceiling; "
                             "a negative number makes the command fail with 125."}});
    book.add<wire::exec_answer>(
        "ExecResponse", answer, "How the command ended. What failed in the sandbox stands in `output`.",
        {{"output", "Standard output and error as they came; bytes that are no UTF-8 became U+FFFD."},
         {"exit_code", "Its exit code; 124 when it timed out, 128 and more for a signal."},
         {"truncated", "There was more: 100 000 bytes are kept."},
         {"signal", signal},
         {"timed_out", "It was ended at its deadline."},
         {"oom_killed", memory},
         {"duration_ms", lasted, whole_number},
         {"output_dropped_bytes", dropped}});
    book.add<wire::run_body>(
        "RunRequest", request, "One program with literal arguments; no shell takes part.",
        {{"argv", "The program and its arguments. It is looked up in the sandbox's `PATH`."},
         {"env", "Added to the sandbox's own environment."},
         {"timeout_seconds", "From the arrival of the request; at most the service's ceiling, which is also "
                             "the default. Fractions count."},
         {"run_id", "Made up by the caller, new for each run: it names the run for a stop."}});
    book.add<wire::run_answer>("RunResponse", answer, "How the program ended.",
                               {{"stdout", "Its standard output; bytes that are no UTF-8 became U+FFFD."},
                                {"stderr", "Its standard error, likewise."},
                                {"exit_code", code},
                                {"timed_out", "It was ended at its deadline."},
                                {"output_limited", "It was ended because it printed more than is kept."},
                                {"output_limit", "That limit in bytes, when it was met."},
                                {"signal", signal},
                                {"oom_killed", memory},
                                {"duration_ms", lasted, whole_number},
                                {"output_dropped_bytes", dropped}});
}

} // namespace sandboxd::openapi
