#include "docker/engine_client.hpp"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

namespace sandboxd::docker {

task<answer<std::string>> engine_client::create_exec(std::string container, exec_spec spec,
                                                     milliseconds limit) {
    json::object body;
    body["AttachStdin"] = spec.attach_stdin;
    body["AttachStdout"] = true;
    body["AttachStderr"] = true;
    body["Tty"] = spec.tty;
    json::array argv;
    for (const auto& one : spec.argv) {
        argv.emplace_back(one);
    }
    body["Cmd"] = std::move(argv);
    json::array environment;
    for (const auto& [name, value] : spec.environment) {
        environment.emplace_back(name + "=" + value);
    }
    body["Env"] = std::move(environment);
    body["WorkingDir"] = spec.working_dir;
    body["User"] = spec.user;
    const auto told = co_await call_object(
        post("create a command", "/containers/" + segment(container) + "/exec", json::serialize(body)), limit,
        {201});
    if (!told) {
        co_return told.error();
    }
    auto id = text_at(*told, "Id").value_or("");
    if (id.empty()) {
        co_return no_answer(errc::protocol, "cannot create a command: the daemon told no id");
    }
    co_return id;
}

task<answer<hijacked>> engine_client::start_exec(boost::asio::any_io_executor executor, std::string exec,
                                                 hijack_options options, milliseconds limit) {
    json::object body;
    body["Detach"] = false;
    body["Tty"] = options.tty; // the same value as at create: it decides the framing
    auto work =
        http_->hijack(post("start a command", "/exec/" + segment(exec) + "/start", json::serialize(body)),
                      std::move(options), limit);
    co_return co_await boost::asio::co_spawn(executor, std::move(work), boost::asio::use_awaitable);
}

task<answer<exec_state>> engine_client::inspect_exec(std::string exec, milliseconds limit) {
    const auto told =
        co_await call_object(get("inspect a command", "/exec/" + segment(exec) + "/json"), limit, {200});
    if (!told) {
        co_return told.error();
    }
    exec_state found;
    found.running = boolean(at(*told, "Running")).value_or(false);
    found.exit_code = integer(at(*told, "ExitCode"));
    co_return found;
}

task<answer<hijacked>> engine_client::attach(boost::asio::any_io_executor executor, std::string id,
                                             attach_options options, milliseconds limit) {
    auto to = target("/containers/" + segment(id) + "/attach")
                  .flag("stream", true)
                  .flag("stdin", options.send_stdin)
                  .flag("stdout", true)
                  .flag("stderr", true)
                  .flag("logs", options.logs);
    auto work = http_->hijack(post("attach to the container", to.text()), std::move(options.stream), limit);
    co_return co_await boost::asio::co_spawn(executor, std::move(work), boost::asio::use_awaitable);
}

} // namespace sandboxd::docker
