#include "cli/client_run.hpp"
#include "cli/terminal.hpp"
#include "client/failure.hpp"

#include <boost/json/object.hpp>

#include <fmt/format.h>

namespace sandboxd::cli {

namespace json = boost::json;
using client::failed;
using client::fault;

namespace {

client::outcome<client::run_options> options_of(const client_call& call) {
    client::run_options made;
    if (call.has("--timeout")) {
        const auto timeout = seconds_in(call, "--timeout", std::chrono::milliseconds(0));
        if (!timeout) {
            return timeout.error();
        }
        made.timeout = *timeout;
    }
    const auto env = call.given.find("--env");
    for (const auto& text : env == call.given.end() ? std::vector<std::string>() : env->second) {
        const auto equals = text.find('=');
        if (equals == std::string::npos || equals == 0) {
            return failed(fault::invalid, "--env " + text + " is not NAME=VALUE");
        }
        made.env.emplace_back(text.substr(0, equals), text.substr(equals + 1));
    }
    return made;
}

std::string as_json(const client::run_answer& ran) {
    json::object body;
    body["stdout"] = ran.out;
    body["stderr"] = ran.err;
    body["exit_code"] = ran.exit_code ? json::value(*ran.exit_code) : json::value(nullptr);
    body["timed_out"] = ran.timed_out;
    body["output_limited"] = ran.output_limited;
    body["oom_killed"] = ran.oom_killed;
    return json_line(body);
}

int status_of(const client::run_answer& ran, const client::session_link& link,
              const client::run_options& options) {
    if (ran.timed_out) {
        const auto limit = std::min(options.timeout.value_or(link.execute_timeout), link.execute_timeout);
        complain_safely(fmt::format("the program was stopped at its time limit of {:g} s",
                                    std::chrono::duration<double>(limit).count()));
        return exit_timed_out;
    }
    if (ran.output_limited) {
        complain_safely(
            fmt::format("the program was stopped: it printed more than {} bytes; send much output to a "
                        "file and use sandboxd cp",
                        ran.output_limit.value_or(0)));
        return exit_cannot_run;
    }
    if (ran.oom_killed) {
        complain_safely("the program was killed because memory ran out");
    }
    if (!ran.exit_code) {
        complain_safely("the service does not say how the program ended");
        return exit_cannot_run;
    }
    return *ran.exit_code & 0xFF;
}

} // namespace

status_task exec_program(const service& of, const client_call& call) {
    auto options = options_of(call);
    if (!options) {
        co_return options.error();
    }
    std::vector<std::string> argv(call.words.begin() + 1, call.words.end());
    if (call.has("--shell")) {
        if (argv.size() != 1) {
            co_return failed(fault::invalid, "--shell takes one line: quote it");
        }
        argv = {"/bin/sh", "-c", argv.front()};
    }
    const auto session = co_await reach(of, call.words.front());
    if (!session) {
        co_return session.error();
    }
    const auto ran = co_await client::ask_run(session->link, std::move(argv), *options);
    if (!ran) {
        co_return ran.error();
    }
    // A program's own output goes out as it is, as it would without a sandbox.
    const bool written = of.json ? print(as_json(*ran)) : print(ran->out) && print_error_stream(ran->err);
    if (!written) {
        co_return failed(fault::invalid, "cannot write the program's output");
    }
    co_return status_of(*ran, *session->link, *options);
}

} // namespace sandboxd::cli
