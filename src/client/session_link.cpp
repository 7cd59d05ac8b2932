#include "client/session_link.hpp"

#include "client/failure.hpp"
#include "client/or_undo.hpp"
#include "client/remote_session.hpp"
#include "core/deadline.hpp"
#include "core/random.hpp"
#include "core/utf8.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>

namespace sandboxd::client {

namespace json = boost::json;

namespace {

constexpr std::chrono::seconds stop_grace{5};
constexpr int not_native = 409;
constexpr std::uint64_t usual_output_limit = 10'485'760;

double seconds_of(std::chrono::milliseconds time) {
    return std::chrono::duration<double>(time).count();
}

task<void> stop_run(link_ptr link, std::string run_id) {
    http_request what;
    what.target = "/sessions/" + link->id + "/runs/" + run_id + "/stop";
    what.token = link->token;
    what.silence = stop_grace;
    what.repeatable = true;
    (void)co_await core::with_timeout(link->http->call(std::move(what)), stop_grace);
}

std::optional<std::string> body_of(const session_link& link, const std::vector<std::string>& argv,
                                   const run_options& options, const std::string& run_id) {
    json::object env;
    for (const auto* layer : {&link.env, &options.env}) {
        for (const auto& [name, value] : *layer) {
            env[name] = value;
        }
    }
    json::object body;
    body["argv"] = json::array(argv.begin(), argv.end());
    body["env"] = std::move(env);
    body["timeout_seconds"] =
        options.timeout ? json::value(seconds_of(*options.timeout)) : json::value(nullptr);
    body["run_id"] = run_id;
    return json_text(body);
}

/// The built-in fault that an answer of `files/*` names.
std::optional<failure> path_fault(const http_answer& answer) {
    if (answer.status != 400 && answer.status != 404) {
        return std::nullopt;
    }
    const auto parsed = json_of(answer.body);
    const auto* detail = parsed ? fields(*parsed).find("detail") : nullptr;
    std::string name;
    if (detail == nullptr || !fields(*detail).read("error", name)) {
        return std::nullopt;
    }
    static constexpr std::array<std::pair<std::string_view, fault>, 5> known{
        {{"FileNotFoundError", fault::not_found},
         {"IsADirectoryError", fault::is_a_directory},
         {"NotADirectoryError", fault::not_a_directory},
         {"FileExistsError", fault::exists},
         {"ValueError", fault::invalid}}};
    const auto* found =
        std::find_if(known.begin(), known.end(), [&](const auto& one) { return one.first == name; });
    if (found == known.end()) {
        return std::nullopt;
    }
    std::string message;
    (void)fields(*detail).read("message", message);
    return failed(found->second, message, answer.status);
}

} // namespace

failure refusal(const session_link& link, const http_answer& answer) {
    if (answer.status == 404 || answer.status == 410) {
        return failed(fault::gone, "the session '" + link.id + "' is gone: " + detail_of(answer),
                      answer.status);
    }
    return failed(fault::refused,
                  "the sandbox service answered " + std::to_string(answer.status) + ": " + detail_of(answer),
                  answer.status);
}

task<outcome<run_answer>> ask_run(link_ptr link, std::vector<std::string> argv, run_options options) {
    if (argv.empty()) {
        co_return failed(fault::invalid, "a command needs a program");
    }
    if (options.timeout && options.timeout->count() <= 0) {
        co_return failed(fault::invalid, "a timeout must be longer than nothing");
    }
    const std::string run_id = core::random_hex(16);
    auto body = body_of(*link, argv, options, run_id);
    if (!body) {
        co_return failed(fault::invalid, "an argument or a variable of the command is not valid UTF-8");
    }
    const auto deadline =
        options.timeout ? std::min(*options.timeout, link->execute_timeout) : link->execute_timeout;
    http_request what;
    what.target = "/sessions/" + link->id + "/run";
    what.token = link->token;
    what.content_type = "application/json";
    what.body = std::move(*body);
    what.silence = deadline + transport_slack;
    const auto answer =
        co_await or_undo(link->http->call(std::move(what)), [&] { return stop_run(link, run_id); });
    if (!answer) {
        co_return answer.error();
    }
    if (answer->status >= 300) {
        co_return refusal(*link, *answer);
    }
    const auto parsed = json_of(answer->body);
    run_answer made;
    if (parsed) {
        const fields in(*parsed);
        if (in.read("stdout", made.out) && in.read("stderr", made.err) &&
            in.read("exit_code", made.exit_code) && in.read_if_there("timed_out", made.timed_out) &&
            in.read_if_there("output_limited", made.output_limited) &&
            in.read_if_there("oom_killed", made.oom_killed) && in.read("output_limit", made.output_limit)) {
            co_return made;
        }
    }
    co_return failed(fault::malformed, "the sandbox service answered the command with something else",
                     answer->status);
}

task<outcome<command_result>> run_command(link_ptr link, std::vector<std::string> argv, run_options options) {
    auto answer = co_await ask_run(link, std::move(argv), options);
    if (!answer) {
        co_return answer.error();
    }
    if (answer->timed_out) {
        // A timeout beyond the ceiling never applied: the ceiling did.
        const bool own = options.timeout && *options.timeout <= link->execute_timeout;
        auto made = failed(fault::timed_out, own ? fmt::format("the command timed out after {:g} seconds",
                                                               seconds_of(*options.timeout))
                                                 : "the command reached the sandbox's time limit");
        made.out = std::move(answer->out);
        made.err = std::move(answer->err);
        co_return made;
    }
    if (answer->output_limited) {
        auto made = failed(fault::output_limited,
                           fmt::format("the command printed more than {} bytes: send much output to a file",
                                       answer->output_limit.value_or(usual_output_limit)));
        made.out = std::move(answer->out);
        made.err = std::move(answer->err);
        co_return made;
    }
    if (!answer->exit_code) {
        co_return failed(fault::malformed, "the sandbox service did not say how the command ended");
    }
    co_return command_result{*answer->exit_code, std::move(answer->out), std::move(answer->err)};
}

task<outcome<std::optional<http_answer>>> ask_native(link_ptr link, std::string op, std::string path,
                                                     std::optional<std::string> content) {
    http_request what;
    what.target = "/sessions/" + link->id + "/files/" + op;
    what.token = link->token;
    what.silence = link->request_timeout;
    // Once more does no harm, but for what another client may have done between: a write, a removal.
    what.repeatable = op != "write" && op != "remove";
    if (content) {
        if (!core::is_utf8(path)) {
            co_return std::nullopt; // the shell carries names of any bytes
        }
        what.target += "?path=" + encoded(path);
        what.content_type = "application/octet-stream";
        what.body = std::move(*content);
        what.sent = link->sent;
    } else {
        auto body = json_text(json::object{{"path", path}});
        if (!body) {
            co_return std::nullopt;
        }
        what.content_type = "application/json";
        what.body = std::move(*body);
        what.received = op == "read" ? link->received : progress();
    }
    auto answer = co_await link->http->call(std::move(what));
    if (!answer) {
        co_return answer.error();
    }
    if (answer->status == not_native) {
        co_return std::nullopt;
    }
    if (auto fault = path_fault(*answer)) {
        co_return std::move(*fault);
    }
    if (answer->status >= 300) {
        co_return refusal(*link, *answer);
    }
    co_return std::optional(std::move(*answer));
}

} // namespace sandboxd::client
