#include "api/admission.hpp"
#include "api/answer.hpp"
#include "api/errors.hpp"
#include "api/handlers.hpp"
#include "core/base64.hpp"
#include "wire/file_answers.hpp"
#include "wire/requests.hpp"

#include <string_view>
#include <utility>

// The operations on files (contract 1.5.4, 3.3 to 3.10). What fails inside the sandbox is an answer with 200.

namespace sandboxd::api {

namespace {

std::vector<wire::file_entry> shown(std::vector<file_entry> entries) {
    std::vector<wire::file_entry> out;
    out.reserve(entries.size());
    for (auto& one : entries) {
        out.push_back({.name = std::move(one.name),
                       .path = std::move(one.path),
                       .is_dir = one.is_dir,
                       .size = one.size,
                       .modified_at = std::nullopt});
    }
    return out;
}

wire::grep_answer shown(session::grep_answer answer) {
    wire::grep_answer out{.matches = {}, .error = std::move(answer.failure), .truncated = answer.truncated};
    out.matches.reserve(answer.matches.size());
    for (auto& one : answer.matches) {
        out.matches.push_back(
            {.path = std::move(one.path), .line_number = one.line_number, .line = std::move(one.line)});
    }
    return out;
}

} // namespace

task<void> read_file(call& c) {
    std::optional<wire::read_body> asked;
    if (!co_await admit_session(c, body_into(c, asked))) {
        co_return;
    }
    session::read_command command{std::move(asked->path), asked->offset, asked->limit};
    auto content = co_await c.on.sessions.files().read(c.session_id(), std::move(command));
    if (!content) {
        co_await c.x.answer().send(reply_of(content.error()));
        co_return;
    }
    const wire::read_answer answer{std::move(*content)};
    co_await answer_with(c, answer);
}

task<void> read_file_bytes(call& c) {
    std::optional<wire::path_body> asked;
    if (!co_await admit_session(c, body_into(c, asked))) {
        co_return;
    }
    auto bytes = co_await c.on.sessions.files().read_bytes(c.session_id(), std::move(asked->path));
    if (!bytes) {
        co_await c.x.answer().send(reply_of(bytes.error()));
        co_return;
    }
    const auto encode = [&bytes] { return core::base64(*bytes); };
    const wire::read_bytes_answer answer{co_await c.on.workers.run_sized(bytes->size(), encode)};
    co_await answer_with(c, answer);
}

task<void> write_file(call& c) {
    std::optional<wire::write_body> asked;
    if (!co_await admit_session(c, body_into(c, asked))) {
        co_return;
    }
    const auto decode = [&asked] { return core::from_base64(asked->content_b64); };
    auto content = co_await c.on.workers.run_sized(asked->content_b64.size(), decode);
    if (!content) {
        co_await c.x.answer().send(http::detail_reply(400, "content_b64 is not valid base64"));
        co_return;
    }
    asked->content_b64 = {};
    auto done =
        co_await c.on.sessions.files().write(c.session_id(), std::move(asked->path), std::move(*content));
    if (!done) {
        co_await c.x.answer().send(reply_of(done.error()));
        co_return;
    }
    const wire::write_answer answer{.path = std::move(done->path), .error = std::move(done->failure)};
    co_await answer_with(c, answer);
}

task<void> edit_file(call& c) {
    std::optional<wire::edit_body> asked;
    if (!co_await admit_session(c, body_into(c, asked))) {
        co_return;
    }
    session::edit_command command{std::move(asked->path), std::move(asked->old_string),
                                  std::move(asked->new_string), asked->replace_all};
    auto done = co_await c.on.sessions.files().edit(c.session_id(), std::move(command));
    if (!done) {
        co_await c.x.answer().send(reply_of(done.error()));
        co_return;
    }
    const wire::edit_answer answer{
        .path = std::move(done->path), .error = std::move(done->failure), .occurrences = done->occurrences};
    co_await answer_with(c, answer);
}

task<void> file_exists(call& c) {
    std::optional<wire::path_body> asked;
    if (!co_await admit_session(c, body_into(c, asked))) {
        co_return;
    }
    const auto found = co_await c.on.sessions.files().exists(c.session_id(), std::move(asked->path));
    if (!found) {
        co_await c.x.answer().send(reply_of(found.error()));
        co_return;
    }
    const wire::exists_answer answer{*found};
    co_await answer_with(c, answer);
}

task<void> list_directory(call& c) {
    std::optional<wire::path_body> asked;
    if (!co_await admit_session(c, body_into(c, asked))) {
        co_return;
    }
    auto all = co_await c.on.sessions.files().ls(c.session_id(), std::move(asked->path));
    if (!all) {
        co_await c.x.answer().send(reply_of(all.error()));
        co_return;
    }
    co_await answer_with(c, shown(std::move(all->entries)), all->truncated);
}

task<void> find_files(call& c) {
    std::optional<wire::glob_body> asked;
    if (!co_await admit_session(c, body_into(c, asked))) {
        co_return;
    }
    glob_request command{std::move(asked->pattern), std::move(asked->path)};
    auto all = co_await c.on.sessions.files().glob(c.session_id(), std::move(command));
    if (!all) {
        co_await c.x.answer().send(reply_of(all.error()));
        co_return;
    }
    co_await answer_with(c, shown(std::move(all->entries)), all->truncated);
}

task<void> search_files(call& c) {
    std::optional<wire::grep_body> asked;
    if (!co_await admit_session(c, body_into(c, asked))) {
        co_return;
    }
    session::grep_command command{std::move(asked->pattern), std::move(asked->path), std::move(asked->glob),
                                  asked->ignore_hidden};
    auto found = co_await c.on.sessions.files().grep(c.session_id(), std::move(command));
    if (!found) {
        co_await c.x.answer().send(reply_of(found.error()));
        co_return;
    }
    co_await answer_with(c, shown(std::move(*found)));
}

} // namespace sandboxd::api
