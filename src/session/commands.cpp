#include "core/log.hpp"
#include "core/random.hpp"
#include "session/attempt.hpp"
#include "session/registered.hpp"
#include "session/text.hpp"

#include <spdlog/fmt/fmt.h>

namespace sandboxd::session {

namespace {
constexpr int timed_out_code = 124;    ///< as the `timeout` utility has it (contract 3.2.2)
constexpr int bad_timeout_code = 125;  ///< the same utility, given a negative number
constexpr int stopped_code = 128 + 15; ///< stopped by TERM
constexpr std::int64_t run_output_limit = 10'485'760;

std::chrono::microseconds since(std::chrono::steady_clock::time_point began) {
    return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - began);
}

/// The end of a command as it is shown; `exec` shows a timeout as 124, `run` as no code at all.
command_end show(const exit_status& status, std::optional<int> on_timeout, bool output_limited) {
    command_end end;
    end.signal = status.signal;
    end.timed_out = status.timed_out;
    end.oom_killed = status.oom_killed;
    end.output_dropped_bytes = status.output_dropped_bytes;
    if (status.timed_out) {
        end.exit_code = on_timeout;
    } else if (output_limited) {
        end.exit_code = std::nullopt;
    } else if (status.exit_code) {
        end.exit_code = status.exit_code;
    } else if (status.signal) {
        end.exit_code = 128 + *status.signal;
    } else {
        end.exit_code = stopped_code;
    }
    return end;
}

exec_answer failed_exec(const std::string& cause) {
    exec_answer answer;
    answer.output = "Error: " + cause;
    answer.end.exit_code = 1;
    return answer;
}

task<void> stop_only(std::shared_ptr<sandbox> box, std::string run_id) {
    co_await box->stop_run(std::move(run_id));
}

task<bool> stop_in(std::shared_ptr<sandbox> box, std::string run_id) {
    co_await box->stop_run(std::move(run_id));
    co_return true;
}

/// Failures that are not the operation's but the service's: they become a status, not an answer of `exec`.
bool is_for_the_service(errc code) {
    return code == errc::not_found || code == errc::start_failed || code == errc::timeout ||
           code == errc::unsupported || code == errc::unavailable || code == errc::exists ||
           code == errc::internal || code == errc::capacity;
}
} // namespace

/// Counted from now, the request's arrival (N8.2). Never above the service's ceiling.
live_registry::window live_registry::window_of(std::optional<double> seconds) const {
    const auto ceiling = std::chrono::seconds(policy_->execute_timeout);
    std::chrono::steady_clock::duration own = ceiling;
    if (seconds && *seconds < std::chrono::duration<double>(ceiling).count()) {
        own = std::chrono::duration_cast<std::chrono::steady_clock::duration>(
            std::chrono::duration<double>(*seconds));
    }
    window times;
    times.arrived = std::chrono::steady_clock::now();
    times.deadline = times.arrived + own;
    times.give_up = times.arrived + ceiling;
    return times;
}

bool live_registry::is_alive(const session& one) {
    const std::lock_guard lock(one.mutex);
    return one.alive();
}

/// Why a command must not start; answered when it may.
live_registry::fate live_registry::fate_of(const ticket& mine) {
    return mine.closing() ? fate::closed : mine.stopped() ? fate::stopped : fate::answered;
}

/// answered: it is our turn.
task<live_registry::fate> live_registry::wait_turn(const command_queue::place& place,
                                                   std::shared_ptr<ticket> mine, time_point deadline) {
    const auto wake = place.wake();
    if (!wake) {
        co_return fate::answered;
    }
    mine->wake_by([wake] { wake->set(); });
    const bool woken = co_await wake->wait_for(deadline - std::chrono::steady_clock::now());
    mine->wake_by({});
    const auto how = fate_of(*mine);
    co_return how == fate::answered && !woken && !place.granted() ? fate::late : how;
}

/// For a command that has been given up: what it started shall not run on without anybody.
void live_registry::stop_behind(const std::shared_ptr<sandbox>& box, const std::string& run_id) {
    core::spawn(boost::asio::make_strand(on_.context.get_executor()), "stopping a command", calls_,
                stop_only(box, run_id));
}

/// Contract 2.11: when the operation ends; not for a session that was closed meanwhile.
void live_registry::record(const session_ptr& one, std::string_view op, std::string_view target, bool ok,
                           std::string_view detail, time_point began) {
    event entry;
    entry.at = on_.clock.wall();
    entry.op = op;
    entry.target = shorten(target);
    entry.ok = ok;
    entry.detail = shorten(detail);
    // One decimal.
    entry.duration_ms = static_cast<double>(since(began).count() / 100) / 10.0;
    bool numbers_low = false;
    {
        const std::lock_guard lock(one->mutex);
        if (!is_listed(one->at)) {
            return;
        }
        if (!one->log.add(std::move(entry))) {
            core::log::warning("an event of session {} is lost: the store does not answer", one->record.id);
        }
        numbers_low = one->log.wanted_limit() != 0;
    }
    if (numbers_low && !flush_asked_.exchange(true)) {
        boost::asio::post(flush_strand_, [wake = flush_now_] { wake->set(); });
    }
    mark_dirty(one);
}

exec_answer live_registry::show_exec(const session& one, ran<exec_result> how, const window& times) const {
    exec_answer answer;
    switch (how.how) {
    case fate::answered:
        if (how.answer) {
            answer.output = std::move(how.answer->output);
            answer.truncated = how.answer->truncated;
            answer.end = show(how.answer->status, timed_out_code, false);
        } else {
            answer = failed_exec(how.answer.error().message);
        }
        break;
    case fate::closed:
        answer = failed_exec("Session " + one.record.id + " was closed");
        break;
    case fate::stopped:
        answer.end.exit_code = stopped_code;
        break;
    case fate::late:
    case fate::overdue:
    case fate::left:
        answer.end.exit_code = timed_out_code;
        answer.end.timed_out = true;
        break;
    }
    answer.end.duration = since(times.arrived);
    return answer;
}

task<result<exec_answer>> live_registry::exec(std::string id, exec_command command, client_probe client) {
    const auto one = find_listed(id);
    if (!one) {
        co_return no_such(id);
    }
    if (stopping_) {
        co_return leaving();
    }
    // The reference's 0 switches the limit off, which leaves the ceiling (9.1.13: a defect); here it is the
    // ceiling.
    const auto seconds = command.timeout_seconds;
    auto times =
        window_of(seconds && *seconds != 0 ? std::optional(static_cast<double>(*seconds)) : std::nullopt);
    if (seconds && *seconds < 0) {
        record(one, "exec", command.command, false, "exit 125", times.arrived);
        auto answer = failed_exec("timeout_seconds must not be negative");
        answer.end.exit_code = bad_timeout_code;
        co_return answer;
    }
    times.give_up += on_.waits.exec_grace;
    auto place = registered::enter(one, core::random_hex(16));
    if (!place) {
        co_return place.error();
    }
    operation<exec_result> what = [run_id = place->mine()->run_id(),
                                   text = command.command](sandbox& box, std::chrono::milliseconds left) {
        exec_request request;
        request.run_id = run_id;
        request.command = text;
        request.timeout = left;
        return box.exec(std::move(request));
    };
    auto how = co_await attempt<exec_result>(one, place->mine(), client, times, false, std::move(what));
    if (how.how == fate::left) {
        co_return error{errc::unavailable, "The client has left before the command started"};
    }
    // "Decided" 7: a timeout of its own that is below the ceiling is answered as one, whatever the stop
    // takes.
    const bool unended =
        how.how == fate::overdue || (how.how == fate::answered && how.answer && how.answer->status.overdue);
    const bool no_answer =
        how.how == fate::answered && !how.answer && how.answer.error().code == errc::timeout;
    const bool past_ceiling = since(times.arrived) >= std::chrono::seconds(policy_->execute_timeout);
    if (no_answer || (unended && past_ceiling)) {
        record(one, "exec", command.command, false, "", times.arrived);
        co_return error{errc::timeout, fmt::format("The command outlasted the service ceiling of {} seconds",
                                                   policy_->execute_timeout)};
    }
    if (how.how == fate::answered && !how.answer && is_for_the_service(how.answer.error().code)) {
        co_return how.answer.error();
    }
    auto answer = show_exec(*one, std::move(how), times);
    record(one, "exec", command.command, answer.end.exit_code == 0,
           fmt::format("exit {}", *answer.end.exit_code), times.arrived);
    co_return answer;
}

result<run_answer> live_registry::show_run(const session& one, ran<run_result> how,
                                           const window& times) const {
    run_answer answer;
    switch (how.how) {
    case fate::answered:
        if (!how.answer) {
            if (how.answer.error().code != errc::timeout) {
                return how.answer.error();
            }
            answer.end.timed_out = true;
            break;
        }
        answer.out = std::move(how.answer->out);
        answer.err = std::move(how.answer->err);
        answer.output_limited = how.answer->output_limited;
        if (answer.output_limited) {
            answer.output_limit = run_output_limit;
        }
        answer.end = show(how.answer->status, std::nullopt, answer.output_limited);
        break;
    case fate::closed:
        return error{errc::gone, "Session " + one.record.id + " was closed"};
    case fate::stopped:
        answer.end.exit_code = stopped_code;
        break;
    case fate::left:
        return error{errc::unavailable, "The client has left before the command started"};
    case fate::late:
    case fate::overdue:
        answer.end.timed_out = true;
        break;
    }
    answer.end.duration = since(times.arrived);
    return answer;
}

task<result<run_answer>> live_registry::run(std::string id, run_command command, client_probe client) {
    const auto one = find_listed(id);
    if (!one) {
        co_return no_such(id);
    }
    if (stopping_) {
        co_return leaving();
    }
    auto times = window_of(command.timeout_seconds);
    times.give_up = times.deadline + on_.waits.run_grace;
    auto place = registered::enter(one, command.run_id);
    if (!place) {
        co_return place.error();
    }
    const auto target = shell_join(command.argv);
    operation<run_result> what = [&command, mine = place->mine()](sandbox& box,
                                                                  std::chrono::milliseconds left) {
        run_request request;
        request.run_id = mine->id_inside();
        request.argv = command.argv;
        request.env = command.env;
        request.timeout = left;
        request.output_limit = run_output_limit;
        return box.run(std::move(request));
    };
    auto how = co_await attempt<run_result>(one, place->mine(), client, times, true, std::move(what));
    const bool died = how.reached && how.how == fate::answered;
    auto answer = show_run(*one, std::move(how), times);
    if (!answer) {
        if (died && answer.error().code == errc::gone) {
            record(one, "run", target, false, "sandbox gone", times.arrived);
            co_return error{errc::gone, "The sandbox of session " + id + " ended while the command ran"};
        }
        co_return answer;
    }
    const auto& end = answer->end;
    const auto detail = end.timed_out            ? std::string("timed out")
                        : answer->output_limited ? std::string("output limit")
                                                 : fmt::format("exit {}", end.exit_code.value_or(0));
    record(one, "run", target, end.exit_code == 0, detail, times.arrived);
    co_return answer;
}

task<result<void>> live_registry::stop_run(std::string id, std::string run_id) {
    const auto one = find_listed(id);
    if (!one) {
        co_return no_such(id);
    }
    std::shared_ptr<ticket> running;
    std::shared_ptr<sandbox> box;
    {
        const std::lock_guard lock(one->mutex);
        if (const auto at = one->commands.find(run_id); at != one->commands.end()) {
            running = at->second;
        }
        box = one->box;
    }
    if (running) {
        running->stop();
        if (!running->started()) {
            co_return result<void>(); // and never will be
        }
    }
    const auto until = std::chrono::steady_clock::now() + on_.waits.stop_run;
    while (box && box->alive()) {
        // Without a request of ours it may be one from before a restart of the service: the sandbox knows.
        if (!co_await bounded<bool>(calls_, box, stop_in(box, running ? running->id_inside() : run_id),
                                    until) ||
            !running) {
            break;
        }
        // A command whose start is on its way to the sandbox is not known there yet: ask again until it has
        // ended.
        const auto left = until - std::chrono::steady_clock::now();
        const auto pause =
            std::min<std::chrono::steady_clock::duration>(left, std::chrono::milliseconds(100));
        if (left.count() <= 0 || co_await running->ended().wait_for(pause)) {
            break;
        }
    }
    co_return result<void>();
}

} // namespace sandboxd::session
