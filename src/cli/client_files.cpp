#include "cli/client_run.hpp"
#include "cli/terminal.hpp"
#include "client/archive_calls.hpp"
#include "client/failure.hpp"
#include "client/session_files.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <fmt/format.h>

namespace sandboxd::cli {

namespace json = boost::json;
using client::failed;
using client::fault;
using client::outcome;

namespace {

outcome<int> print_rows(const service& of, const std::vector<client::file_info>& rows) {
    std::string text;
    json::array list;
    for (const auto& row : rows) {
        if (of.json) {
            list.push_back(json::object{{"name", row.name},
                                        {"path", row.path},
                                        {"is_dir", row.is_dir},
                                        {"size", row.size ? json::value(*row.size) : json::value(nullptr)}});
        } else {
            text += fmt::format("{:>10}  {}{}\n", row.size ? size_text(*row.size) : "-", shown(row.name),
                                row.is_dir ? "/" : "");
        }
    }
    return print(of.json ? json_line(list) : text)
               ? outcome<int>(0)
               : outcome<int>(failed(fault::invalid, "cannot write to standard output"));
}

/// A directory's rows, or the one of a file.
task<outcome<std::vector<client::file_info>>> rows_at(client::link_ptr link, std::string path) {
    auto rows = co_await client::list_directory(link, path);
    if (rows || rows.error().kind != fault::not_a_directory) {
        co_return rows;
    }
    auto one = co_await client::stat_path(link, path);
    if (!one) {
        co_return one.error();
    }
    co_return std::vector<client::file_info>{std::move(*one)};
}

task<outcome<void>> remove_one(const service& of, const client_call& call, std::string word) {
    const auto colon = word.find(':');
    const auto what = parse_place(word);
    const auto session = what.session.value_or(word);
    if (!client::is_session_id(session)) {
        co_return failed(fault::invalid, "that is neither SESSION nor SESSION:PATH");
    }
    if (colon == std::string::npos) {
        const auto closed =
            co_await ask(of, "DELETE", "/sessions/" + session + (call.has("--purge") ? "?purge=true" : ""));
        co_return closed ? outcome<void>() : outcome<void>(closed.error());
    }
    if (what.path.empty()) {
        co_return failed(fault::invalid, "that names no path; " + session + " alone closes the session");
    }
    const auto reached = co_await reach(of, session);
    if (!reached) {
        co_return reached.error();
    }
    const auto path = reached->absolute(what.path);
    if (!call.has("--recursive")) {
        const auto found = co_await client::stat_path(reached->link, path);
        if (found && found->is_dir) {
            co_return failed(fault::invalid, "a directory: --recursive removes it with what is in it");
        }
        // A link that leads nowhere is there to be removed all the same.
        if (!found && found.error().kind != fault::not_found) {
            co_return found.error();
        }
    }
    co_return co_await client::remove_path(reached->link, path);
}

} // namespace

status_task list_files(const service& of, const client_call& call) {
    const auto& word = call.words.front();
    const auto colon = word.find(':');
    const std::string session = word.substr(0, colon);
    const std::string path = colon == std::string::npos ? "" : word.substr(colon + 1);
    const auto reached = co_await reach(of, session);
    if (!reached) {
        co_return reached.error();
    }
    const auto rows = co_await rows_at(reached->link, reached->absolute(path));
    if (rows) {
        co_return print_rows(of, *rows);
    }
    if (rows.error().kind != fault::gone) {
        co_return rows.error();
    }
    // A closed session: what it left.
    auto archive =
        std::make_shared<client::archive_calls>(client::archive_calls{of.http, {.token = of.token}});
    const auto kept = co_await client::archived_listing(archive, session, path.empty() ? "." : path);
    if (!kept) {
        const bool no_session =
            kept.error().status == 404 && kept.error().message.find("No such directory") == std::string::npos;
        co_return no_session || kept.error().status == 409 || kept.error().status == 401 ? rows.error()
                                                                                         : kept.error();
    }
    co_return print_rows(of, *kept);
}

status_task remove_things(const service& of, const client_call& call) {
    int status = 0;
    for (const auto& word : call.words) {
        const auto done = co_await remove_one(of, call, word);
        if (!done) {
            complain_safely(word + ": " + advice(done.error()));
            status = 1;
        }
    }
    co_return status;
}

} // namespace sandboxd::cli
