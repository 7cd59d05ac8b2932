#include "api/admission.hpp"
#include "api/answer.hpp"
#include "api/errors.hpp"
#include "api/handlers.hpp"
#include "router/query.hpp"
#include "session/read_limit.hpp"
#include "wire/params.hpp"
#include "wire/requests.hpp"
#include "wire/workspace_models.hpp"

#include <algorithm>
#include <utility>

// `files/*` (contract N4, N5). Checks in the order of N4.1.

namespace sandboxd::api {

namespace {

using session::host_door;
using session::native_answer;
using session::native_call;
using session::native_op;

/// Contract N4.5.
http::reply reply_of(const hostfs::native_failure& failure) {
    using hostfs::refusal;
    if (failure.why == refusal::ask_sandbox) {
        return http::detail_reply(409, failure.message);
    }
    if (failure.why == refusal::timeout) {
        return http::detail_reply(504, failure.message);
    }
    const wire::file_error_answer body{
        {.error = std::string(hostfs::exception_of(failure.why)), .message = failure.message}};
    return http::json_reply(failure.why == refusal::not_found ? 404 : 400, wire::to_json(body));
}

/// N4.1, steps 3 and 5; answered when it is false.
task<bool> door_is_open(call& c, native_op op) {
    const auto door = c.on.sessions.host_files().door_of(c.session_id());
    if (!door) {
        co_await c.x.answer().send(api::reply_of(door.error()));
        co_return false;
    }
    const bool writing = session::changes(op);
    if (*door >= (writing ? host_door::writes : host_door::reads)) {
        co_return true;
    }
    co_await c.x.answer().send(
        http::detail_reply(409, writing ? "native writes are off" : "native files are off"));
    co_return false;
}

/// Nothing when it failed and was answered.
task<std::optional<native_answer>> carry_out(call& c, native_call asked) {
    auto done = co_await c.on.sessions.host_files().native(c.session_id(), std::move(asked));
    if (!done) {
        co_await c.x.answer().send(api::reply_of(done.error()));
        co_return std::nullopt;
    }
    if (!*done) {
        co_await c.x.answer().send(reply_of(done->error()));
        co_return std::nullopt;
    }
    co_return std::move(**done);
}

/// For the six that take `{"path": ...}`.
task<std::optional<native_answer>> on_path(call& c, native_op op) {
    std::optional<wire::path_body> asked;
    if (!co_await admit_session(c, body_into(c, asked)) || !co_await door_is_open(c, op)) {
        co_return std::nullopt;
    }
    native_call wanted{.op = op, .path = std::move(asked->path), .content = {}};
    co_return co_await carry_out(c, std::move(wanted));
}

wire::file_entry shown(file_entry one) {
    return {.name = std::move(one.name),
            .path = std::move(one.path),
            .is_dir = one.is_dir,
            .size = one.size,
            .modified_at = std::nullopt};
}

/// The content of a write; nothing when it can't be had and that was answered.
task<std::optional<std::string>> take_content(call& c) {
    const auto most =
        static_cast<std::uint64_t>(std::max<std::int64_t>(0, session::read_limit(*c.on.sessions.policy())));
    auto bytes = co_await c.x.body().read_all(most);
    if (bytes) {
        co_return std::move(*bytes);
    }
    if (bytes.error() == http::body_fault::too_large) {
        // The connection reads on and discards the rest, so that the client sees this (N13.1).
        co_await c.x.answer().send(http::detail_reply(409, "larger than a native write"));
    } else {
        co_await http::refuse(c.x, bytes.error());
    }
    co_return std::nullopt;
}

} // namespace

task<void> native_read(call& c) {
    auto answer = co_await on_path(c, native_op::read);
    if (answer) {
        co_await answer_with_bytes(c, std::move(answer->text));
    }
}

task<void> native_write(call& c) {
    std::optional<std::string> path;
    const auto read_path = [&path, &c](const wire::parsed_body&, wire::fault_list& faults) {
        const router::query query(c.route.query);
        const auto name = c.told.query->name;
        path = wire::read_query_text(name, query.get(name), faults);
    };
    if (!co_await admit_session(c, read_path) || !co_await door_is_open(c, native_op::write)) {
        co_return;
    }
    auto content = co_await take_content(c);
    if (!content) {
        co_return;
    }
    native_call wanted{.op = native_op::write, .path = std::move(*path), .content = std::move(*content)};
    if (co_await carry_out(c, std::move(wanted))) {
        co_await answer_with_nothing(c);
    }
}

task<void> native_stat(call& c) {
    auto answer = co_await on_path(c, native_op::stat);
    if (answer) {
        const auto row = shown(std::move(answer->entries.front()));
        co_await answer_with(c, row);
    }
}

task<void> native_list(call& c) {
    auto answer = co_await on_path(c, native_op::list);
    if (!answer) {
        co_return;
    }
    std::vector<wire::file_entry> rows;
    rows.reserve(answer->entries.size());
    for (auto& one : answer->entries) {
        rows.push_back(shown(std::move(one)));
    }
    co_await answer_with(c, rows, false);
}

task<void> native_realpath(call& c) {
    auto answer = co_await on_path(c, native_op::realpath);
    if (answer) {
        const wire::realpath_answer path{std::move(answer->text)};
        co_await answer_with(c, path);
    }
}

task<void> native_mkdir(call& c) {
    if (co_await on_path(c, native_op::mkdir)) {
        co_await answer_with_nothing(c);
    }
}

task<void> native_remove(call& c) {
    if (co_await on_path(c, native_op::remove)) {
        co_await answer_with_nothing(c);
    }
}

} // namespace sandboxd::api
