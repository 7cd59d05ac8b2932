#include "client/archive_calls.hpp"

#include "client/failure.hpp"
#include "core/base64.hpp"
#include "core/utf8.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

namespace sandboxd::client {

namespace json = boost::json;

namespace {

failure odd_answer() {
    return failed(fault::malformed, "the sandbox service answered with something that is no archive's", 200);
}

/// One request about the workspace of `id`; `operation` "" for those of several.
task<outcome<json::value>> ask(archive_ptr of, std::string id, std::string operation, json::object body) {
    if (!is_session_id(id)) {
        co_return failed(fault::invalid, "'" + id + "' is no session id");
    }
    auto text = json_text(body);
    if (!text) {
        co_return failed(fault::invalid, "the path is not valid UTF-8");
    }
    http_request what;
    what.target = "/workspaces/" + id + (operation.empty() ? "" : "/" + operation);
    what.token = of->options.token;
    what.content_type = "application/json";
    what.body = std::move(*text);
    what.silence = of->options.timeout;
    what.repeatable = true;
    const auto answer = co_await of->http->call(std::move(what));
    if (!answer) {
        co_return answer.error();
    }
    if (answer->status >= 300) {
        co_return failed(fault::refused, core::to_utf8(answer->body.substr(0, 64 * 1024)), answer->status);
    }
    auto parsed = json_of(answer->body);
    co_return parsed ? outcome<json::value>(std::move(*parsed)) : outcome<json::value>(odd_answer());
}

std::optional<workspace_tree> tree_from(const json::value& from) {
    const fields in(from);
    const auto* rows = in.find("entries");
    auto entries = rows != nullptr ? file_infos_of(*rows) : std::nullopt;
    workspace_tree made;
    if (!entries || !in.read("truncated", made.truncated)) {
        return std::nullopt;
    }
    made.entries = std::move(*entries);
    return made;
}

std::optional<archived_tree> tree_result(const json::value& from) {
    const fields in(from);
    archived_tree made;
    if (!in.read("session_id", made.session_id)) {
        return std::nullopt;
    }
    if (const auto* tree = in.find("tree"); tree != nullptr && !tree->is_null()) {
        auto read = tree_from(*tree);
        if (!read) {
            return std::nullopt;
        }
        made.tree = std::move(*read);
        return made;
    }
    std::optional<std::string> text;
    std::optional<int> status;
    if (!in.read("error", text) || !in.read("status_code", status)) {
        return std::nullopt;
    }
    made.tree = failed(fault::refused, text.value_or(""), status);
    return made;
}

} // namespace

task<outcome<std::vector<file_info>>> archived_listing(archive_ptr of, std::string id, std::string path) {
    auto answer = co_await ask(of, std::move(id), "ls", json::object{{"path", path}});
    if (!answer) {
        co_return answer.error();
    }
    auto rows = file_infos_of(*answer);
    if (!rows) {
        co_return odd_answer();
    }
    co_return std::move(*rows);
}

task<outcome<workspace_tree>> archived_tree_of(archive_ptr of, std::string id, std::string path,
                                               tree_bounds bounds) {
    json::object body{{"path", path}, {"max_depth", bounds.max_depth}, {"max_entries", bounds.max_entries}};
    auto answer = co_await ask(of, std::move(id), "tree", std::move(body));
    if (!answer) {
        co_return answer.error();
    }
    auto made = tree_from(*answer);
    if (!made) {
        co_return odd_answer();
    }
    co_return std::move(*made);
}

task<outcome<std::vector<archived_tree>>> archived_trees_of(archive_ptr of, std::vector<std::string> ids,
                                                            std::string path, tree_bounds bounds) {
    json::object body{{"sessions", json::array(ids.begin(), ids.end())},
                      {"path", path},
                      {"max_depth", bounds.max_depth},
                      {"max_entries", bounds.max_entries}};
    auto answer = co_await ask(of, "trees", "", std::move(body));
    if (!answer) {
        co_return answer.error();
    }
    const auto* rows = fields(*answer).find("results");
    if (rows == nullptr || !rows->is_array()) {
        co_return odd_answer();
    }
    std::vector<archived_tree> made;
    for (const auto& row : rows->get_array()) {
        auto one = tree_result(row);
        if (!one) {
            co_return odd_answer();
        }
        made.push_back(std::move(*one));
    }
    co_return made;
}

task<outcome<std::string>> archived_text(archive_ptr of, std::string id, std::string path,
                                         std::uint64_t offset, std::uint64_t limit) {
    json::object body{{"path", path}, {"offset", offset}, {"limit", limit}};
    auto answer = co_await ask(of, std::move(id), "read", std::move(body));
    if (!answer) {
        co_return answer.error();
    }
    std::string content;
    if (!fields(*answer).read("content", content)) {
        co_return odd_answer();
    }
    co_return content;
}

task<outcome<std::string>> archived_bytes(archive_ptr of, std::string id, std::string path) {
    auto answer = co_await ask(of, std::move(id), "read_bytes", json::object{{"path", path}});
    if (!answer) {
        co_return answer.error();
    }
    std::string content;
    if (fields(*answer).read("content_b64", content)) {
        if (auto bytes = core::from_base64(content)) {
            co_return std::move(*bytes);
        }
    }
    co_return odd_answer();
}

} // namespace sandboxd::client
