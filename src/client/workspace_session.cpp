#include "client/workspace_session.hpp"

#include "client/failure.hpp"
#include "client/or_null.hpp"
#include "core/deadline.hpp"
#include "core/log.hpp"

#include <boost/json/object.hpp>

#include <cmath>

namespace sandboxd::client {

namespace json = boost::json;

namespace {

constexpr std::chrono::milliseconds ask_again{200};
constexpr std::chrono::seconds wait_notice{3};

/// Calls `say` once after a while; cancelled by its end.
class notice {
public:
    notice(const boost::asio::any_io_executor& executor, std::function<void()> say)
        : timer_(executor, wait_notice) {
        if (!say) {
            return;
        }
        timer_.async_wait([say = std::move(say)](const boost::system::error_code& cut_short) {
            if (cut_short) {
                return;
            }
            try {
                say();
            } catch (const std::exception& e) {
                core::log::warning("the notice of a slow open failed: {}", e.what());
            } catch (...) {
                core::log::warning("the notice of a slow open failed");
            }
        });
    }

private:
    boost::asio::steady_timer timer_;
};

} // namespace

std::optional<workspace_ref> workspace_session::ref() const {
    const std::lock_guard lock(mutex_);
    return ref_;
}

task<outcome<link_ptr>> workspace_session::connect() {
    const auto self = shared_from_this();
    if (link_) {
        co_return link_;
    }
    if (!opening_) {
        opening_ = start_on(strand(), open_now());
    }
    const auto mine = opening_;
    if (co_await wait_whole(mine->done, [] {})) {
        throw boost::system::system_error(boost::asio::error::operation_aborted);
    }
    if (mine->failure) {
        std::rethrow_exception(mine->failure);
    }
    co_return *mine->value;
}

task<outcome<link_ptr>> workspace_session::open_now() {
    const auto self = shared_from_this();
    struct end {
        workspace_session& of;
        ~end() { of.opening_.reset(); }
    };
    const end at_end{*this};
    auto answer = co_await ask_open();
    if (!answer) {
        co_return answer.error();
    }
    const auto known = ref();
    if (known && answer->status == 404) {
        co_return failed(fault::gone, "the session '" + known->id + "' no longer exists", answer->status);
    }
    if (answer->status >= 300) {
        co_return failed(fault::refused,
                         "the sandbox service refused to open a session (HTTP " +
                             std::to_string(answer->status) + "): " + detail_of(*answer),
                         answer->status);
    }
    const auto created = session_created_of(answer->body);
    if (!created) {
        co_return failed(fault::malformed,
                         "the sandbox service answered the open with something that is not a session: is " +
                             http_->where().text + " sandboxd, and not a proxy?",
                         answer->status);
    }
    if (!known) {
        // Before anything else can fail: whoever holds this can remove what was opened.
        const std::lock_guard lock(mutex_);
        ref_ = workspace_ref{options_.provider, created->session.session_id};
    }
    const auto policy = co_await ask_policy();
    if (!policy) {
        co_return policy.error();
    }
    auto made = std::make_shared<session_link>();
    made->http = http_;
    made->id = created->session.session_id;
    made->token = created->token;
    made->env = options_.env;
    made->execute_timeout = std::chrono::milliseconds(std::llround(policy->execute_timeout * 1000));
    made->request_timeout = options_.request_timeout;
    made->native_reads = policy->native_files;
    made->native_writes = policy->native_writes;
    made->native_realpath = policy->native_realpath;
    link_ = made;
    co_return link_;
}

task<outcome<http_answer>> workspace_session::ask_open() {
    const auto known = ref();
    const bool named = !known && options_.session_name;
    json::object body;
    body["session_id"] = known ? json::value(known->id) : or_null(options_.session_name);
    body["runtime"] = or_null(options_.runtime);
    body["tenant"] = or_null(options_.tenant);
    body["reuse"] = named;
    body["attach"] = known.has_value();
    const auto text = json_text(body);
    if (!text) {
        co_return failed(fault::invalid, "the runtime's name is not valid UTF-8");
    }
    const notice slow(strand(), options_.on_wait);
    const auto patience = std::max(options_.opening_timeout, options_.request_timeout);
    const auto give_up = std::chrono::steady_clock::now() + patience;
    while (true) {
        http_request what;
        what.target = "/sessions";
        what.token = options_.token;
        what.content_type = "application/json";
        what.body = *text;
        what.silence = patience;
        auto answer = co_await http_->call(std::move(what));
        // A name that someone else is opening right now is open a moment later.
        const bool again =
            answer && named && answer->status == 409 && std::chrono::steady_clock::now() < give_up;
        if (!again) {
            co_return answer;
        }
        if (!co_await core::sleep_for(ask_again)) {
            throw boost::system::system_error(boost::asio::error::operation_aborted);
        }
    }
}

task<outcome<service_policy>> workspace_session::ask_policy() {
    http_request what;
    what.method = "GET";
    what.target = "/policy";
    what.token = options_.token;
    what.silence = options_.request_timeout;
    what.repeatable = true;
    const auto answer = co_await http_->call(std::move(what));
    if (!answer) {
        co_return answer.error();
    }
    if (answer->status >= 300) {
        co_return failed(fault::refused,
                         "the sandbox service does not tell its policy (HTTP " +
                             std::to_string(answer->status) + "): " + detail_of(*answer),
                         answer->status);
    }
    const auto policy = service_policy_of(answer->body);
    constexpr double longest = 365.0 * 24 * 3600; // s
    if (!policy || policy->execute_timeout < 0 || policy->execute_timeout > longest) {
        co_return failed(fault::malformed, "the sandbox service's policy is none", answer->status);
    }
    co_return *policy;
}

task<outcome<std::string>> workspace_session::working_dir() {
    const auto self = shared_from_this();
    if (working_dir_) {
        co_return *working_dir_;
    }
    auto link = co_await connect();
    if (!link) {
        co_return link.error();
    }
    auto said = co_await run_command(*link, {"sh", "-c", "pwd -P"}, {});
    if (!said) {
        co_return said.error();
    }
    if (said->exit_code != 0) {
        co_return failed(fault::gone, "could not resolve the sandbox's working directory: " + said->err);
    }
    while (said->out.ends_with('\n')) {
        said->out.pop_back();
    }
    working_dir_ = said->out;
    co_return std::move(said->out);
}

task<outcome<void>> workspace_session::purge() {
    const auto self = shared_from_this();
    auto link = co_await connect();
    if (!link) {
        co_return link.error().kind == fault::gone ? outcome<void>() : outcome<void>(link.error());
    }
    http_request what;
    what.method = "DELETE";
    what.target = "/sessions/" + (*link)->id + "?purge=true";
    what.token = options_.token;
    what.silence = options_.request_timeout;
    what.repeatable = true;
    const auto answer = co_await http_->call(std::move(what));
    if (!answer) {
        co_return answer.error();
    }
    if (answer->status >= 300 && answer->status != 404 && answer->status != 410) {
        co_return failed(fault::refused,
                         "the sandbox service refused to purge the session (HTTP " +
                             std::to_string(answer->status) + "): " + detail_of(*answer),
                         answer->status);
    }
    co_return outcome<void>();
}

} // namespace sandboxd::client
