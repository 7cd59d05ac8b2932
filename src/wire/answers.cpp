#include "wire/answers.hpp"

namespace sandboxd::wire {
namespace {

std::int64_t milliseconds(std::chrono::microseconds duration) {
    return std::chrono::round<std::chrono::milliseconds>(duration).count();
}

/// As a shell reports it.
std::optional<std::int64_t> shell_code(const exit_status& status) {
    if (status.exit_code) {
        return *status.exit_code;
    }
    return status.signal ? std::optional<std::int64_t>(128 + *status.signal) : std::nullopt;
}

} // namespace

exec_answer answer_of(exec_result result) {
    exec_answer out;
    out.output = std::move(result.output);
    out.truncated = result.truncated;
    out.exit_code = result.status.timed_out ? std::optional<std::int64_t>(124) : shell_code(result.status);
    out.signal = result.status.signal;
    out.timed_out = result.status.timed_out;
    out.oom_killed = result.status.oom_killed;
    out.duration_ms = milliseconds(result.status.duration);
    out.output_dropped_bytes = result.status.output_dropped_bytes;
    return out;
}

run_answer answer_of(run_result result, std::size_t output_limit) {
    run_answer out;
    out.std_out = std::move(result.out);
    out.std_err = std::move(result.err);
    out.timed_out = result.status.timed_out;
    out.output_limited = result.output_limited;
    if (result.output_limited) {
        out.output_limit = static_cast<std::int64_t>(output_limit);
    }
    if (!result.status.timed_out && !result.output_limited) {
        out.exit_code = shell_code(result.status);
    }
    out.signal = result.status.signal;
    out.oom_killed = result.status.oom_killed;
    out.duration_ms = milliseconds(result.status.duration);
    out.output_dropped_bytes = result.status.output_dropped_bytes;
    return out;
}

} // namespace sandboxd::wire
