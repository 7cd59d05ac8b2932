#include "api/admission.hpp"
#include "api/answer.hpp"
#include "api/errors.hpp"
#include "api/handlers.hpp"
#include "api/shown.hpp"
#include "core/deadline.hpp"
#include "wire/params.hpp"
#include "wire/requests.hpp"

// Commands: exec (contract 1.5.4), run (1.5.5) and its stop (1.5.6).

namespace sandboxd::api {

namespace {

/// For the kernel to learn that nobody reads what was sent.
constexpr std::chrono::milliseconds echo_time{100};

/// A command that had to wait is not started for a client that has left. One that has shut its sending side
/// may have left altogether: an interim answer finds out (design.md "Decided" 23). Others get none: not every
/// client skips one.
task<bool> still_there(http::responder& client) {
    if (!client.half_closed()) {
        co_return true;
    }
    if (!co_await client.interim(102)) {
        co_return false;
    }
    co_await core::sleep_for(echo_time);
    co_return !client.gone();
}

session::client_probe probe_of(call& c) {
    http::responder& client = c.x.answer();
    return [&client] { return still_there(client); };
}

} // namespace

task<void> exec(call& c) {
    std::optional<wire::exec_body> asked;
    if (!co_await admit_session(c, body_into(c, asked))) {
        co_return;
    }
    session::exec_command command{.command = std::move(asked->command),
                                  .timeout_seconds = asked->timeout_seconds};
    auto answer = co_await c.on.sessions.exec(c.session_id(), std::move(command), probe_of(c));
    if (!answer) {
        co_await c.x.answer().send(reply_of(answer.error()));
        co_return;
    }
    co_await answer_with(c, shown(std::move(*answer)));
}

task<void> run(call& c) {
    std::optional<wire::run_body> asked;
    if (!co_await admit_session(c, body_into(c, asked))) {
        co_return;
    }
    session::run_command command{.run_id = std::move(asked->run_id),
                                 .argv = std::move(asked->argv),
                                 .env = std::move(asked->env),
                                 .timeout_seconds = asked->timeout_seconds};
    auto answer = co_await c.on.sessions.run(c.session_id(), std::move(command), probe_of(c));
    if (!answer) {
        co_await c.x.answer().send(reply_of(answer.error()));
        co_return;
    }
    co_await answer_with(c, shown(std::move(*answer)));
}

task<void> stop_run(call& c) {
    const std::string run_id(c.route.parameter("run_id"));
    const auto check_id = [&run_id](const wire::parsed_body&, wire::fault_list& faults) {
        (void)wire::check_run_id(run_id, faults);
    };
    if (!co_await admit_session(c, check_id)) {
        co_return;
    }
    const auto stopped = co_await c.on.sessions.stop_run(c.session_id(), run_id);
    if (!stopped) {
        co_await c.x.answer().send(reply_of(stopped.error()));
        co_return;
    }
    co_await answer_with_nothing(c);
}

} // namespace sandboxd::api
