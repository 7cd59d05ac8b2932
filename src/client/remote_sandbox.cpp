#include "sandboxd/remote_sandbox.hpp"

#include "client/failure.hpp"
#include "client/or_null.hpp"
#include "client/remote_session.hpp"
#include "core/base64.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

namespace sandboxd::client {

namespace json = boost::json;

namespace {

using session_ptr = std::shared_ptr<remote_session>;

std::string could_not(const char* what, const std::string& path) {
    return std::string("Error: could not ") + what + " '" + path + "'";
}

task<std::string> read_text(session_ptr of, std::string path, std::uint64_t offset, std::uint64_t limit) {
    const json::object body{{"path", path}, {"offset", offset}, {"limit", limit}};
    const auto answer = co_await of->operation("read", json_text(body), true);
    std::string content;
    if (answer && fields(*answer).read("content", content)) {
        co_return content;
    }
    co_return could_not("read", path);
}

task<std::string> read_whole(session_ptr of, std::string path) {
    const json::object body{{"path", path}};
    const auto answer = co_await of->operation("read_bytes", json_text(body), true);
    std::string content;
    if (answer && fields(*answer).read("content_b64", content)) {
        co_return core::from_base64(content).value_or("");
    }
    co_return std::string();
}

task<write_response> write_file(session_ptr of, std::string path, std::string content) {
    const json::object body{{"path", path}, {"content_b64", core::base64(content)}};
    const auto answer = co_await of->operation("write", json_text(body), false);
    write_response made;
    if (answer && answer->is_object() && fields(*answer).read("path", made.path) &&
        fields(*answer).read("error", made.error)) {
        co_return made;
    }
    co_return write_response{.path = {}, .error = could_not("write", path)};
}

task<edit_response> edit_file(session_ptr of, std::string path, std::string old_string,
                              std::string new_string, bool replace_all) {
    const json::object body{
        {"path", path}, {"old_string", old_string}, {"new_string", new_string}, {"replace_all", replace_all}};
    const auto answer = co_await of->operation("edit", json_text(body), false);
    edit_response made;
    if (answer && answer->is_object() && fields(*answer).read("path", made.path) &&
        fields(*answer).read("error", made.error) && fields(*answer).read("occurrences", made.occurrences)) {
        co_return made;
    }
    co_return edit_response{.path = {}, .error = could_not("edit", path), .occurrences = {}};
}

task<bool> is_there(session_ptr of, std::string path) {
    const json::object body{{"path", path}};
    const auto answer = co_await of->operation("exists", json_text(body), true);
    bool there = false;
    co_return answer&& fields(*answer).read("exists", there) && there;
}

task<std::vector<file_info>> listing(session_ptr of, std::string operation, json::object body) {
    const auto answer = co_await of->operation(std::move(operation), json_text(body), true);
    auto rows = answer ? file_infos_of(*answer) : std::nullopt;
    co_return rows ? std::move(*rows) : std::vector<file_info>();
}

std::optional<std::vector<grep_match>> matches_of(const json::value& from) {
    std::vector<grep_match> made;
    const auto* rows = fields(from).find("matches");
    if (rows == nullptr) {
        return made;
    }
    if (!rows->is_array()) {
        return std::nullopt;
    }
    for (const auto& row : rows->get_array()) {
        const fields in(row);
        grep_match one;
        if (!in.read("path", one.path) || !in.read("line_number", one.line_number) ||
            !in.read("line", one.line)) {
            return std::nullopt;
        }
        made.push_back(std::move(one));
    }
    return made;
}

task<grep_response> search(session_ptr of, std::string pattern, std::optional<std::string> path,
                           std::optional<std::string> glob, bool ignore_hidden) {
    const json::object body{{"pattern", pattern},
                            {"path", or_null(path)},
                            {"glob", or_null(glob)},
                            {"ignore_hidden", ignore_hidden}};
    const auto answer = co_await of->operation("grep", json_text(body), true);
    grep_response made;
    if (answer && answer->is_object() && fields(*answer).read("error", made.error)) {
        if (made.error) {
            co_return made;
        }
        if (auto found = matches_of(*answer)) {
            made.matches = std::move(*found);
            co_return made;
        }
    }
    made.error = could_not("search for", pattern);
    co_return made;
}

task<bool> lives(session_ptr of) {
    const auto info = co_await of->info(false);
    co_return info && info->alive;
}

task<std::optional<usage_sample>> sample(session_ptr of) {
    const auto info = co_await of->info(true);
    co_return info ? info->usage : std::nullopt;
}

task<void> unheeded(task<bool> work) {
    (void)co_await std::move(work);
}

} // namespace

struct async_remote_sandbox::impl {
    std::shared_ptr<connections> owner;
    session_ptr session;
};

outcome<async_remote_sandbox> async_remote_sandbox::create(std::shared_ptr<connections> shared,
                                                           remote_sandbox_options options) {
    return make(std::move(shared), std::move(options), false);
}

outcome<async_remote_sandbox> async_remote_sandbox::create(const boost::asio::any_io_executor& executor,
                                                           const connection_options& where,
                                                           remote_sandbox_options options) {
    auto own = connections::create(executor, where);
    if (!own) {
        return own.error();
    }
    return make(std::move(*own), std::move(options), true);
}

outcome<async_remote_sandbox> async_remote_sandbox::make(std::shared_ptr<connections> over,
                                                         remote_sandbox_options options, bool owned) {
    for (const auto& [name, text] :
         {std::pair{"session id", &options.session_id}, std::pair{"tenant", &options.tenant}}) {
        if (*text && !is_session_id(**text)) {
            return failed(fault::invalid,
                          std::string("the ") + name + " '" + **text +
                              "' is not one the service accepts: letters, digits, '.', '_' and '-', "
                              "at most 64, beginning with a letter or digit");
        }
    }
    if (!is_token(options.token)) {
        return failed(fault::invalid,
                      "the token holds a blank or a control character, or is longer than 4096 bytes");
    }
    auto made = std::make_shared<impl>();
    made->owner = std::move(over);
    made->session = std::make_shared<remote_session>(made->owner->parts().http, std::move(options), owned);
    return async_remote_sandbox(std::move(made));
}

task<outcome<void>> async_remote_sandbox::start() const {
    return on_strand(self_->session, self_->session->start());
}
task<bool> async_remote_sandbox::end(bool purge) const {
    return on_strand(self_->session, self_->session->stop(purge));
}
task<void> async_remote_sandbox::stop(bool purge) const {
    return unheeded(end(purge));
}
task<execute_response> async_remote_sandbox::execute(std::string command,
                                                     std::optional<std::chrono::seconds> timeout) const {
    return on_strand(self_->session, self_->session->execute(std::move(command), timeout));
}
task<std::string> async_remote_sandbox::read(std::string path, std::uint64_t offset,
                                             std::uint64_t limit) const {
    return on_strand(self_->session, read_text(self_->session, std::move(path), offset, limit));
}
task<std::string> async_remote_sandbox::read_bytes(std::string path) const {
    return on_strand(self_->session, read_whole(self_->session, std::move(path)));
}
task<write_response> async_remote_sandbox::write(std::string path, std::string content) const {
    return on_strand(self_->session, write_file(self_->session, std::move(path), std::move(content)));
}
task<edit_response> async_remote_sandbox::edit(std::string path, std::string old_string,
                                               std::string new_string, bool replace_all) const {
    return on_strand(self_->session, edit_file(self_->session, std::move(path), std::move(old_string),
                                               std::move(new_string), replace_all));
}
task<bool> async_remote_sandbox::exists(std::string path) const {
    return on_strand(self_->session, is_there(self_->session, std::move(path)));
}
task<std::vector<file_info>> async_remote_sandbox::ls_info(std::string path) const {
    return on_strand(self_->session, listing(self_->session, "ls", json::object{{"path", path}}));
}
task<std::vector<file_info>> async_remote_sandbox::glob_info(std::string pattern, std::string path) const {
    return on_strand(self_->session,
                     listing(self_->session, "glob", json::object{{"pattern", pattern}, {"path", path}}));
}
task<grep_response> async_remote_sandbox::grep_raw(std::string pattern, std::optional<std::string> path,
                                                   std::optional<std::string> glob,
                                                   bool ignore_hidden) const {
    return on_strand(self_->session, search(self_->session, std::move(pattern), std::move(path),
                                            std::move(glob), ignore_hidden));
}
task<bool> async_remote_sandbox::is_alive() const {
    return on_strand(self_->session, lives(self_->session));
}
task<std::optional<usage_sample>> async_remote_sandbox::resource_usage() const {
    return on_strand(self_->session, sample(self_->session));
}
std::string async_remote_sandbox::session_id() const {
    return self_->session->session_id();
}
std::chrono::milliseconds async_remote_sandbox::server_timeout() const {
    return self_->session->server_timeout();
}

outcome<remote_sandbox> remote_sandbox::create(const connection_options& where,
                                               remote_sandbox_options options) {
    auto own = connections::create(where);
    if (!own) {
        return own.error();
    }
    auto made = async_remote_sandbox::make(std::move(*own), std::move(options), true);
    if (!made) {
        return made.error();
    }
    return remote_sandbox(std::move(*made));
}

outcome<remote_sandbox> remote_sandbox::create(std::shared_ptr<connections> shared,
                                               remote_sandbox_options options) {
    if (!shared->parts().thread) {
        return failed(fault::invalid, "a client that blocks needs connections made without an executor");
    }
    auto made = async_remote_sandbox::make(std::move(shared), std::move(options), false);
    if (!made) {
        return made.error();
    }
    return remote_sandbox(std::move(*made));
}

template <class T>
T remote_sandbox::wait(task<T> work) const {
    return block_on(awaited_.self_->session->strand(), std::move(work));
}

outcome<void> remote_sandbox::start() const {
    return wait(awaited_.start());
}
void remote_sandbox::stop(bool purge) const {
    (void)wait(awaited_.end(purge));
}
execute_response remote_sandbox::execute(std::string command,
                                         std::optional<std::chrono::seconds> timeout) const {
    return wait(awaited_.execute(std::move(command), timeout));
}
std::string remote_sandbox::read(std::string path, std::uint64_t offset, std::uint64_t limit) const {
    return wait(awaited_.read(std::move(path), offset, limit));
}
std::string remote_sandbox::read_bytes(std::string path) const {
    return wait(awaited_.read_bytes(std::move(path)));
}
write_response remote_sandbox::write(std::string path, std::string content) const {
    return wait(awaited_.write(std::move(path), std::move(content)));
}
edit_response remote_sandbox::edit(std::string path, std::string old_string, std::string new_string,
                                   bool replace_all) const {
    return wait(awaited_.edit(std::move(path), std::move(old_string), std::move(new_string), replace_all));
}
bool remote_sandbox::exists(std::string path) const {
    return wait(awaited_.exists(std::move(path)));
}
std::vector<file_info> remote_sandbox::ls_info(std::string path) const {
    return wait(awaited_.ls_info(std::move(path)));
}
std::vector<file_info> remote_sandbox::glob_info(std::string pattern, std::string path) const {
    return wait(awaited_.glob_info(std::move(pattern), std::move(path)));
}
grep_response remote_sandbox::grep_raw(std::string pattern, std::optional<std::string> path,
                                       std::optional<std::string> glob, bool ignore_hidden) const {
    return wait(awaited_.grep_raw(std::move(pattern), std::move(path), std::move(glob), ignore_hidden));
}
bool remote_sandbox::is_alive() const {
    return wait(awaited_.is_alive());
}
std::optional<usage_sample> remote_sandbox::resource_usage() const {
    return wait(awaited_.resource_usage());
}
std::string remote_sandbox::session_id() const {
    return awaited_.session_id();
}
std::chrono::milliseconds remote_sandbox::server_timeout() const {
    return awaited_.server_timeout();
}

} // namespace sandboxd::client
