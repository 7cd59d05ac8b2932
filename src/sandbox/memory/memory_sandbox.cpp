#include "sandbox/memory/memory_sandbox.hpp"

#include "core/deadline.hpp"

namespace sandboxd::sandboxes::memory {

namespace {

exit_status status_of(const finished& done, interruption reason,
                      std::chrono::steady_clock::time_point begun) {
    exit_status out;
    out.duration =
        std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - begun);
    out.output_dropped_bytes = done.dropped;
    out.timed_out = done.timed_out;
    out.stopped = reason == interruption::stopped;
    if (!out.timed_out && !out.stopped && !done.limited) {
        out.exit_code = done.exit_code;
        out.signal = done.signal;
    }
    return out;
}

error gone(bool may_have_started) {
    return {errc::gone, "the sandbox has ended", may_have_started};
}

void cut(std::string& stream, std::size_t most, exit_status& status) {
    if (stream.size() > most) {
        status.output_dropped_bytes += stream.size() - most;
        stream.resize(most);
    }
}

} // namespace

result<memory_sandbox::command_ptr> memory_sandbox::enter(const std::string& run_id) {
    const std::lock_guard lock(mutex_);
    if (!alive_) {
        return gone(false);
    }
    auto command = std::make_shared<running_command>();
    if (!running_.emplace(run_id, command).second) {
        return error{errc::exists, "a command with this run id is running", false};
    }
    ++counts_->commands;
    return command;
}

void memory_sandbox::leave(const std::string& run_id, const command_ptr& command) {
    {
        const std::lock_guard lock(mutex_);
        running_.erase(run_id);
    }
    command->over.set();
}

environment memory_sandbox::environment_with(const environment& more) const {
    auto out = spec_.env;
    out.insert(out.end(), more.begin(), more.end());
    return out;
}

task<result<exec_result>> memory_sandbox::exec(exec_request request) {
    const auto self = shared_from_this();
    const auto command = enter(request.run_id);
    if (!command) {
        co_return command.error();
    }
    const auto begun = std::chrono::steady_clock::now();
    output_limits limits;
    limits.keep = request.output_cap;
    auto work = interpret(parse_script(request.command), environment_with({}), true, limits, request.timeout,
                          *command);
    auto done = co_await std::move(work);
    leave(request.run_id, *command);
    if ((*command)->reason() == interruption::died) {
        co_return gone(true);
    }
    exec_result answer;
    answer.status = status_of(done, (*command)->reason(), begun);
    answer.output = std::move(done.out);
    answer.truncated = done.dropped > 0;
    co_return answer;
}

task<result<run_result>> memory_sandbox::run(run_request request) {
    const auto self = shared_from_this();
    if (request.argv.empty()) {
        co_return error{errc::invalid, "there is no command to run", false};
    }
    const auto command = enter(request.run_id);
    if (!command) {
        co_return command.error();
    }
    const auto begun = std::chrono::steady_clock::now();
    std::vector<step> steps(1);
    steps.front().words = request.argv;
    output_limits limits;
    limits.limit = request.output_limit;
    auto work =
        interpret(std::move(steps), environment_with(request.env), false, limits, request.timeout, *command);
    auto done = co_await std::move(work);
    leave(request.run_id, *command);
    if ((*command)->reason() == interruption::died) {
        co_return gone(true);
    }
    run_result answer;
    answer.status = status_of(done, (*command)->reason(), begun);
    answer.output_limited = done.limited;
    answer.out = std::move(done.out);
    answer.err = std::move(done.err);
    if (answer.output_limited || answer.status.timed_out) {
        cut(answer.out, request.kept_when_stopped, answer.status);
        cut(answer.err, request.kept_when_stopped, answer.status);
    }
    co_return answer;
}

task<void> memory_sandbox::stop_run(std::string run_id) {
    command_ptr command;
    {
        const std::lock_guard lock(mutex_);
        const auto found = running_.find(run_id);
        if (found == running_.end()) {
            co_return;
        }
        command = found->second;
    }
    command->interrupt(interruption::stopped);
    co_await command->over.wait();
}

task<result<usage_sample>> memory_sandbox::usage() {
    const std::lock_guard lock(mutex_);
    if (!alive_) {
        co_return gone(false);
    }
    usage_sample sample;
    sample.memory_bytes = 1024 * 1024;
    sample.memory_limit_bytes = spec_.limits.memory_bytes;
    sample.pids = 1 + running_.size();
    co_return sample;
}

void memory_sandbox::on_death(std::function<void()> callback) {
    {
        const std::lock_guard lock(mutex_);
        if (stopping_ || told_) {
            return;
        }
        if (alive_) {
            on_death_ = std::move(callback);
            return;
        }
        told_ = true;
    }
    callback();
}

/// Ends every command with `died`; false when there was no life to end.
bool memory_sandbox::end_all() {
    if (!alive_.exchange(false)) {
        return false;
    }
    for (const auto& [id, command] : running_) {
        command->interrupt(interruption::died);
    }
    return true;
}

bool memory_sandbox::die() {
    std::function<void()> callback;
    {
        const std::lock_guard lock(mutex_);
        if (!end_all()) {
            return false;
        }
        if (!stopping_ && on_death_) {
            told_ = true;
            callback = std::move(on_death_);
        }
    }
    if (callback) {
        callback();
    }
    return true;
}

task<void> memory_sandbox::stop(bool purge) {
    const auto self = shared_from_this();
    bool was_alive = false;
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
        on_death_ = nullptr;
        was_alive = end_all();
    }
    const std::chrono::milliseconds delay(counts_->stop_delay_ms.load());
    if (was_alive && delay.count() > 0) {
        co_await core::sleep_for(delay);
    }
    counts_->stops += was_alive ? 1 : 0;
    counts_->purges += purge ? 1 : 0;
}

} // namespace sandboxd::sandboxes::memory
