#include "sandboxd/sandboxd_workspace.hpp"

#include "client/connections.hpp"
#include "client/failure.hpp"
#include "client/session_files.hpp"
#include "client/workspace_session.hpp"

namespace sandboxd::client {

struct async_sandboxd_workspace::impl {
    std::shared_ptr<connections> owner;
    std::shared_ptr<workspace_session> session;
};

namespace {

using session_ptr = std::shared_ptr<workspace_session>;

/// Opens if need be, then the operation with its arguments.
template <class T, class... Args>
task<outcome<T>> opened(session_ptr of, task<outcome<T>> (*operation)(link_ptr, Args...), Args... arguments) {
    auto link = co_await of->connect();
    if (!link) {
        co_return link.error();
    }
    co_return co_await operation(*link, std::move(arguments)...);
}

} // namespace

outcome<async_sandboxd_workspace> async_sandboxd_workspace::create(std::shared_ptr<connections> shared,
                                                                   workspace_options options) {
    if (options.ref && options.ref->provider != options.provider) {
        return failed(fault::invalid, "expected a '" + options.provider + "' workspace ref, got '" +
                                          options.ref->provider + "'");
    }
    const std::string* id = options.ref ? &options.ref->id : nullptr;
    const std::string* name = options.session_name ? &*options.session_name : nullptr;
    const std::string* tenant = options.tenant ? &*options.tenant : nullptr;
    for (const std::string* text : {id, name, tenant}) {
        if (text != nullptr && !is_session_id(*text)) {
            return failed(fault::invalid,
                          "'" + *text +
                              "' is not an id the service accepts: letters, digits, '.', '_' and '-', "
                              "at most 64, beginning with a letter or digit");
        }
    }
    if (!is_token(options.token)) {
        return failed(fault::invalid,
                      "the token holds a blank or a control character, or is longer than 4096 bytes");
    }
    auto made = std::make_shared<impl>();
    made->owner = std::move(shared);
    made->session = std::make_shared<workspace_session>(made->owner->parts().http, std::move(options));
    return async_sandboxd_workspace(std::move(made));
}

outcome<async_sandboxd_workspace>
async_sandboxd_workspace::create(const boost::asio::any_io_executor& executor,
                                 const connection_options& where, workspace_options options) {
    auto own = connections::create(executor, where);
    if (!own) {
        return own.error();
    }
    return create(std::move(*own), std::move(options));
}

std::optional<workspace_ref> async_sandboxd_workspace::ref() const {
    return self_->session->ref();
}
task<outcome<std::string>> async_sandboxd_workspace::working_dir() const {
    return on_strand(self_->session, self_->session->working_dir());
}
task<outcome<command_result>> async_sandboxd_workspace::run(std::vector<std::string> argv,
                                                            run_options options) const {
    return on_strand(self_->session,
                     opened(self_->session, &run_command, std::move(argv), std::move(options)));
}
task<outcome<command_result>> async_sandboxd_workspace::shell(std::string command,
                                                              run_options options) const {
    return run({"/bin/sh", "-c", std::move(command)}, std::move(options));
}
task<outcome<std::string>> async_sandboxd_workspace::read_bytes(std::string path) const {
    return on_strand(self_->session, opened(self_->session, &read_file, std::move(path)));
}
task<outcome<void>> async_sandboxd_workspace::write_bytes(std::string path, std::string data) const {
    return on_strand(self_->session, opened(self_->session, &write_file, std::move(path), std::move(data)));
}
task<outcome<file_info>> async_sandboxd_workspace::stat(std::string path) const {
    return on_strand(self_->session, opened(self_->session, &stat_path, std::move(path)));
}
task<outcome<std::vector<file_info>>> async_sandboxd_workspace::list_dir(std::string path) const {
    return on_strand(self_->session, opened(self_->session, &list_directory, std::move(path)));
}
task<outcome<void>> async_sandboxd_workspace::make_dir(std::string path) const {
    return on_strand(self_->session, opened(self_->session, &make_directory, std::move(path)));
}
task<outcome<void>> async_sandboxd_workspace::remove(std::string path) const {
    return on_strand(self_->session, opened(self_->session, &remove_path, std::move(path)));
}
task<outcome<bool>> async_sandboxd_workspace::exists(std::string path) const {
    return on_strand(self_->session, opened(self_->session, &path_exists, std::move(path)));
}
task<outcome<std::string>> async_sandboxd_workspace::realpath(std::string path) const {
    return on_strand(self_->session, opened(self_->session, &resolve_path, std::move(path)));
}
task<outcome<void>> async_sandboxd_workspace::purge() const {
    return on_strand(self_->session, self_->session->purge());
}

outcome<sandboxd_workspace> sandboxd_workspace::create(std::shared_ptr<connections> shared,
                                                       workspace_options options) {
    if (!shared->parts().thread) {
        return failed(fault::invalid, "a client that blocks needs connections made without an executor");
    }
    auto made = async_sandboxd_workspace::create(std::move(shared), std::move(options));
    if (!made) {
        return made.error();
    }
    return sandboxd_workspace(std::move(*made));
}

outcome<sandboxd_workspace> sandboxd_workspace::create(const connection_options& where,
                                                       workspace_options options) {
    auto own = connections::create(where);
    if (!own) {
        return own.error();
    }
    return create(std::move(*own), std::move(options));
}

template <class T>
T sandboxd_workspace::wait(task<T> work) const {
    return block_on(awaited_.self_->session->strand(), std::move(work));
}

std::optional<workspace_ref> sandboxd_workspace::ref() const {
    return awaited_.ref();
}
outcome<std::string> sandboxd_workspace::working_dir() const {
    return wait(awaited_.working_dir());
}
outcome<command_result> sandboxd_workspace::run(std::vector<std::string> argv, run_options options) const {
    return wait(awaited_.run(std::move(argv), std::move(options)));
}
outcome<command_result> sandboxd_workspace::shell(std::string command, run_options options) const {
    return wait(awaited_.shell(std::move(command), std::move(options)));
}
outcome<std::string> sandboxd_workspace::read_bytes(std::string path) const {
    return wait(awaited_.read_bytes(std::move(path)));
}
outcome<void> sandboxd_workspace::write_bytes(std::string path, std::string data) const {
    return wait(awaited_.write_bytes(std::move(path), std::move(data)));
}
outcome<file_info> sandboxd_workspace::stat(std::string path) const {
    return wait(awaited_.stat(std::move(path)));
}
outcome<std::vector<file_info>> sandboxd_workspace::list_dir(std::string path) const {
    return wait(awaited_.list_dir(std::move(path)));
}
outcome<void> sandboxd_workspace::make_dir(std::string path) const {
    return wait(awaited_.make_dir(std::move(path)));
}
outcome<void> sandboxd_workspace::remove(std::string path) const {
    return wait(awaited_.remove(std::move(path)));
}
outcome<bool> sandboxd_workspace::exists(std::string path) const {
    return wait(awaited_.exists(std::move(path)));
}
outcome<std::string> sandboxd_workspace::realpath(std::string path) const {
    return wait(awaited_.realpath(std::move(path)));
}
outcome<void> sandboxd_workspace::purge() const {
    return wait(awaited_.purge());
}

} // namespace sandboxd::client
