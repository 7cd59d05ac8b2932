#include "client/remote_session.hpp"

#include "client/failure.hpp"
#include "client/or_null.hpp"
#include "core/random.hpp"

#include <boost/json/object.hpp>

#include <algorithm>
#include <cmath>

namespace sandboxd::client {

namespace json = boost::json;

namespace {

template <class T>
void throw_if_cancelled(bool cancelled, const strand_call<T>& call) {
    if (cancelled) {
        throw boost::system::system_error(boost::asio::error::operation_aborted);
    }
    if (call.failure) {
        std::rethrow_exception(call.failure);
    }
}

} // namespace

remote_session::remote_session(std::shared_ptr<http_client> http, remote_sandbox_options options,
                               bool owns_connections)
    : http_(std::move(http)),
      options_(std::move(options)),
      owns_connections_(owns_connections),
      session_token_(options_.token),
      session_id_(options_.session_id ? *options_.session_id : "remote-" + core::random_hex(6)),
      server_timeout_(options_.timeout) {}

std::string remote_session::session_id() const {
    const std::lock_guard lock(mutex_);
    return session_id_;
}

std::chrono::milliseconds remote_session::server_timeout() const {
    const std::lock_guard lock(mutex_);
    return server_timeout_;
}

task<outcome<void>> remote_session::start() {
    const auto self = shared_from_this();
    if (const auto closing = closing_) {
        throw_if_cancelled(co_await wait_whole(closing->done, [] {}), *closing);
    }
    if (started_) {
        co_return outcome<void>();
    }
    if (!opening_) {
        opening_ = start_on(strand(), open_now());
    }
    const auto mine = opening_;
    throw_if_cancelled(co_await wait_whole(mine->done, [] {}), *mine);
    co_return *mine->value;
}

task<outcome<void>> remote_session::open_now() {
    const auto self = shared_from_this();
    struct end {
        remote_session& of;
        ~end() { of.opening_.reset(); }
    };
    const end at_end{*this};
    auto created = co_await ask_open();
    if (!created) {
        co_return created.error();
    }
    session_token_ = created->token;
    {
        const std::lock_guard lock(mutex_);
        session_id_ = created->session.session_id;
    }
    const auto ceiling = co_await ask_ceiling();
    {
        const std::lock_guard lock(mutex_);
        server_timeout_ = ceiling;
    }
    started_ = true;
    co_return outcome<void>();
}

task<outcome<session_created>> remote_session::ask_open() {
    json::object body;
    body["session_id"] = session_id();
    body["runtime"] = or_null(options_.runtime);
    body["tenant"] = or_null(options_.tenant);
    body["reuse"] = options_.reuse;
    body["attach"] = false;
    const auto text = json_text(body);
    if (!text) {
        co_return failed(fault::invalid, "the runtime's name is no UTF-8");
    }
    http_request what;
    what.target = "/sessions";
    what.token = options_.token;
    what.content_type = "application/json";
    what.body = *text;
    what.silence = options_.timeout;
    auto answer = co_await http_->call(std::move(what));
    if (!answer) {
        co_return answer.error();
    }
    if (answer->status >= 300) {
        co_return failed(fault::refused,
                         "the sandbox service refused to open a session (HTTP " +
                             std::to_string(answer->status) + "): " + detail_of(*answer),
                         answer->status);
    }
    auto created = session_created_of(answer->body);
    if (!created) {
        co_return failed(fault::malformed,
                         "the sandbox service answered the open with something that is not a session: is " +
                             http_->where().text + " sandboxd, and not a proxy?",
                         answer->status);
    }
    co_return std::move(*created);
}

task<std::chrono::milliseconds> remote_session::ask_ceiling() {
    http_request what;
    what.method = "GET";
    what.target = "/policy";
    what.token = options_.token;
    what.silence = options_.timeout;
    what.repeatable = true;
    const auto answer = co_await http_->call(std::move(what));
    if (!answer || answer->status >= 300) {
        co_return options_.timeout;
    }
    const auto policy = service_policy_of(answer->body);
    constexpr double longest = 365.0 * 24 * 3600; // s; what is said beyond a year is nonsense
    if (!policy || policy->execute_timeout <= 0 || policy->execute_timeout > longest) {
        co_return options_.timeout;
    }
    co_return std::chrono::milliseconds(std::llround(policy->execute_timeout * 1000));
}

task<bool> remote_session::stop(bool purge) {
    const auto self = shared_from_this();
    if (const auto opening = opening_) {
        throw_if_cancelled(co_await wait_whole(opening->done, [] {}), *opening);
    }
    if (started_ && !closing_) {
        closing_ = start_on(strand(), close_now(purge));
    }
    if (const auto closing = closing_) {
        throw_if_cancelled(co_await wait_whole(closing->done, [] {}), *closing);
    }
    if (owns_connections_) {
        http_->forget();
    }
    co_return true;
}

task<bool> remote_session::close_now(bool purge) {
    const auto self = shared_from_this();
    struct end {
        remote_session& of;
        ~end() {
            of.started_ = false;
            of.closing_.reset();
        }
    };
    const end at_end{*this};
    http_request what;
    what.method = "DELETE";
    what.target = "/sessions/" + session_id() + (purge ? "?purge=true" : "");
    what.token = session_token_;
    what.silence = options_.timeout;
    what.repeatable = true;
    (void)co_await http_->call(std::move(what));
    co_return true;
}

task<std::optional<json::value>> remote_session::send(std::string name, std::string body,
                                                      std::chrono::milliseconds silence, bool repeatable) {
    http_request what;
    what.target = "/sessions/" + session_id() + "/" + name;
    what.token = session_token_;
    what.content_type = "application/json";
    what.body = std::move(body);
    what.silence = std::max(silence, std::chrono::milliseconds(0));
    what.repeatable = repeatable;
    const auto answer = co_await http_->call(std::move(what));
    if (!answer || answer->status >= 300) {
        co_return std::nullopt;
    }
    co_return json_of(answer->body);
}

task<std::optional<json::value>> remote_session::operation(std::string name, std::optional<std::string> body,
                                                           bool repeatable) {
    const auto self = shared_from_this();
    if (!body || !co_await start()) {
        co_return std::nullopt;
    }
    co_return co_await send(std::move(name), std::move(*body), server_timeout() + transport_slack,
                            repeatable);
}

task<execute_response> remote_session::execute(std::string command,
                                               std::optional<std::chrono::seconds> timeout) {
    const auto self = shared_from_this();
    execute_response made{.output = "Error: sandbox service unavailable", .exit_code = 1, .truncated = false};
    json::object body;
    body["command"] = command;
    body["timeout_seconds"] = timeout ? json::value(timeout->count()) : json::value(nullptr);
    auto text = json_text(body);
    if (!text) {
        made.output = "Error: the command is not valid UTF-8";
        co_return made;
    }
    if (!co_await start()) {
        co_return made;
    }
    constexpr std::chrono::seconds longest = std::chrono::hours(24 * 365);
    const std::chrono::milliseconds effective = timeout ? std::min(*timeout, longest) : server_timeout();
    const auto answer = co_await send("exec", std::move(*text), effective + transport_slack, false);
    if (!answer) {
        co_return made;
    }
    const fields in(*answer);
    execute_response read;
    if (in.read("output", read.output) && in.read("exit_code", read.exit_code) &&
        in.read_if_there("truncated", read.truncated)) {
        co_return read;
    }
    co_return made;
}

task<std::optional<session_info>> remote_session::info(bool usage) {
    const auto self = shared_from_this();
    http_request what;
    what.method = "GET";
    what.target = "/sessions/" + session_id() + (usage ? "?usage=true" : "");
    what.token = session_token_;
    what.silence = options_.timeout;
    what.repeatable = true;
    const auto answer = co_await http_->call(std::move(what));
    if (!answer || answer->status >= 300) {
        co_return std::nullopt;
    }
    const auto parsed = json_of(answer->body);
    co_return parsed ? session_info_of(*parsed) : std::nullopt;
}

} // namespace sandboxd::client
