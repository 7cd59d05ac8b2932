#include "api/admission.hpp"
#include "api/answer.hpp"
#include "api/errors.hpp"
#include "api/handlers.hpp"
#include "core/base64.hpp"
#include "wire/params.hpp"
#include "wire/requests.hpp"
#include "wire/workspace_models.hpp"

#include <utility>

// The archive: what sessions left in their workspaces (contract 7, N7). For the service's token only.

namespace sandboxd::api {

namespace {

constexpr unsigned no_root_status = 409;
constexpr std::string_view no_root_text = "The service has no workspace_root: nothing is kept";

bool has_root(const call& c) {
    return c.on.sessions.policy()->workspace_root.has_value();
}

/// 401, 422 (the id first), 409 (contract 7.2); answered when it is false.
template <class Model>
task<bool> admit(call& c, std::optional<Model>& model, bool with_id) {
    const auto read = [&c, &model, with_id](const wire::parsed_body& body, wire::fault_list& faults) {
        if (with_id) {
            (void)wire::check_session_id(c.route.parameter("session_id"), faults);
        }
        model = wire::read_model<Model>(body, faults);
    };
    co_return co_await admit_service(c, read);
}

template <class Model>
task<bool> admit_archive(call& c, std::optional<Model>& model) {
    if (!co_await admit(c, model, true)) {
        co_return false;
    }
    if (!has_root(c)) {
        co_await c.x.answer().send(http::detail_reply(no_root_status, no_root_text));
        co_return false;
    }
    co_return true;
}

std::vector<wire::file_entry> shown(std::vector<session::archive_entry> entries) {
    std::vector<wire::file_entry> out;
    out.reserve(entries.size());
    for (auto& one : entries) {
        out.push_back({.name = std::move(one.name),
                       .path = std::move(one.path),
                       .is_dir = one.is_dir,
                       .size = one.size,
                       .modified_at = std::move(one.modified_at)});
    }
    return out;
}

wire::tree_answer shown_tree(session::archive_listing found) {
    return {.entries = shown(std::move(found.entries)), .truncated = found.truncated};
}

session::tree_command command_of(std::string path, std::int64_t max_depth, std::int64_t max_entries) {
    return {.path = std::move(path),
            .max_depth = static_cast<std::size_t>(max_depth),
            .max_entries = static_cast<std::size_t>(max_entries)};
}

} // namespace

task<void> list_workspace(call& c) {
    std::optional<wire::path_body> asked;
    if (!co_await admit_archive(c, asked)) {
        co_return;
    }
    auto found = co_await c.on.sessions.workspaces().ls(c.session_id(), std::move(asked->path));
    if (!found) {
        co_await c.x.answer().send(reply_of(found.error()));
        co_return;
    }
    co_await answer_with(c, shown(std::move(found->entries)), found->truncated);
}

task<void> read_workspace(call& c) {
    std::optional<wire::read_body> asked;
    if (!co_await admit_archive(c, asked)) {
        co_return;
    }
    session::archive_read command{std::move(asked->path), asked->offset, asked->limit};
    auto content = co_await c.on.sessions.workspaces().read(c.session_id(), std::move(command));
    if (!content) {
        co_await c.x.answer().send(reply_of(content.error()));
        co_return;
    }
    const wire::read_answer answer{std::move(*content)};
    co_await answer_with(c, answer);
}

task<void> read_workspace_bytes(call& c) {
    std::optional<wire::path_body> asked;
    if (!co_await admit_archive(c, asked)) {
        co_return;
    }
    const auto bytes = co_await c.on.sessions.workspaces().read_bytes(c.session_id(), std::move(asked->path));
    if (!bytes) {
        co_await c.x.answer().send(reply_of(bytes.error()));
        co_return;
    }
    const auto encode = [&bytes] { return core::base64(*bytes); };
    const wire::read_bytes_answer answer{co_await c.on.workers.run_sized(bytes->size(), encode)};
    co_await answer_with(c, answer);
}

task<void> walk_workspace(call& c) {
    std::optional<wire::tree_body> asked;
    if (!co_await admit_archive(c, asked)) {
        co_return;
    }
    auto command = command_of(std::move(asked->path), asked->max_depth, asked->max_entries);
    auto found = co_await c.on.sessions.workspaces().tree(c.session_id(), std::move(command));
    if (!found) {
        co_await c.x.answer().send(reply_of(found.error()));
        co_return;
    }
    const auto answer = shown_tree(std::move(*found));
    co_await answer_with(c, answer);
}

task<void> walk_workspaces(call& c) {
    std::optional<wire::trees_body> asked;
    if (!co_await admit(c, asked, false)) {
        co_return;
    }
    const auto ids = asked->sessions;
    std::vector<result<session::archive_listing>> found;
    if (has_root(c)) {
        auto command = command_of(std::move(asked->path), asked->max_depth, asked->max_entries);
        found = co_await c.on.sessions.workspaces().trees(ids, std::move(command));
    }
    wire::trees_answer answer;
    answer.results.reserve(ids.size());
    for (std::size_t i = 0; i < ids.size(); ++i) {
        wire::tree_result one{.session_id = ids[i], .tree = {}, .error = {}, .status_code = {}};
        if (found.empty()) {
            one.error = std::string(no_root_text);
            one.status_code = no_root_status;
        } else if (found[i]) {
            one.tree = shown_tree(std::move(*found[i]));
        } else {
            one.error = detail_of(found[i].error());
            one.status_code = status_of(found[i].error().code);
        }
        answer.results.push_back(std::move(one));
    }
    co_await answer_with(c, answer);
}

} // namespace sandboxd::api
