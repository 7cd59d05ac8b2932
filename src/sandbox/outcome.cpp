#include "sandbox/outcome.hpp"

#include <cerrno>
#include <csignal>

namespace sandboxd::sandboxes {

using protocol::end_cause;
using protocol::failure_kind;

namespace {

constexpr int killed_status = 128 + SIGKILL; ///< what a shell makes of a killed child

std::string_view default_sentence(failure_kind kind) {
    switch (kind) {
    case failure_kind::not_found:
        return "the program does not exist in the sandbox";
    case failure_kind::not_executable:
        return "the program can't be executed";
    case failure_kind::directory:
        return "the working directory can't be entered";
    case failure_kind::no_process:
        return "no new process: the sandbox's limit is reached";
    case failure_kind::invalid:
        return "the command or its environment is not acceptable";
    default:
        return "the command could not be started";
    }
}

std::string sentence_of(const end_record& record) {
    std::string out = "sandboxd: ";
    out += record.text.empty() ? default_sentence(record.failure) : std::string_view(record.text);
    out += '\n';
    return out;
}

/// The failures that are no result of a command.
std::optional<error> error_of(const end_record& record) {
    if (record.cause != end_cause::never_started) {
        return std::nullopt;
    }
    if (record.failure == failure_kind::duplicate) {
        if (record.os_errno == EBUSY) {
            return error{errc::exists, "a command with this run id is running", false};
        }
        return error{errc::busy, "a command with this run id has run lately", false};
    }
    if (record.failure == failure_kind::unsupported) {
        return error{errc::unsupported, "the sandbox's agent can't do that", false};
    }
    return std::nullopt;
}

exit_status status_of(const end_record& record, bool oom_killed) {
    exit_status out;
    out.duration = record.duration;
    out.output_dropped_bytes = record.dropped;
    out.oom_killed = oom_killed;
    switch (record.cause) {
    case end_cause::exited:
        out.exit_code = record.exit_code;
        out.signal = record.signal;
        break;
    case end_cause::timed_out:
        out.timed_out = true;
        break;
    case end_cause::stopped:
        out.stopped = true;
        break;
    case end_cause::never_started:
        out.exit_code = record.failure == failure_kind::not_found ? 127 : 126;
        break;
    case end_cause::output_limit:
    case end_cause::lost:
        break;
    }
    return out;
}

/// Cuts a stream and counts what was cut.
void keep(std::string& stream, std::size_t most, exit_status& status) {
    if (stream.size() > most) {
        status.output_dropped_bytes += stream.size() - most;
        stream.resize(most);
        stream.shrink_to_fit();
    }
}

} // namespace

bool looks_oom_killed(const end_record& record) {
    return record.cause == end_cause::lost ||
           (record.cause == end_cause::exited &&
            (record.signal == SIGKILL || record.exit_code == killed_status));
}

result<exec_result> exec_outcome(end_record record, std::string output, bool oom_killed) {
    if (auto wrong = error_of(record)) {
        return std::move(*wrong);
    }
    exec_result out;
    out.status = status_of(record, oom_killed);
    out.output = std::move(output);
    out.truncated = record.dropped > 0;
    if (record.cause == end_cause::never_started) {
        out.output += sentence_of(record);
    }
    return out;
}

result<run_result> run_outcome(end_record record, std::string out, std::string err,
                               std::size_t kept_when_stopped, bool oom_killed) {
    if (auto wrong = error_of(record)) {
        return std::move(*wrong);
    }
    run_result answer;
    answer.status = status_of(record, oom_killed);
    answer.out = std::move(out);
    answer.err = std::move(err);
    answer.output_limited = record.cause == end_cause::output_limit;
    if (answer.output_limited || answer.status.timed_out) {
        keep(answer.out, kept_when_stopped, answer.status);
        keep(answer.err, kept_when_stopped, answer.status);
    }
    if (record.cause == end_cause::never_started) {
        answer.err += sentence_of(record);
    }
    return answer;
}

} // namespace sandboxd::sandboxes
