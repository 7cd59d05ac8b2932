#include "docker/engine_client.hpp"

#include <boost/asio/strand.hpp>

#include <algorithm>

namespace sandboxd::docker {

request get(std::string what, std::string target) {
    request made;
    made.what = std::move(what);
    made.target = std::move(target);
    return made;
}

request post(std::string what, std::string target, std::string json_body) {
    request made = get(std::move(what), std::move(target));
    made.method = "POST";
    made.body = std::move(json_body);
    made.content_type = made.body.empty() ? "" : "application/json";
    return made;
}

request erase(std::string what, std::string target) {
    request made = get(std::move(what), std::move(target));
    made.method = "DELETE";
    return made;
}

engine_client::engine_client(std::shared_ptr<client> http, engine_options options)
    : http_(std::move(http)), options_(std::move(options)) {}

task<answer<reply>> engine_client::call(request what, milliseconds limit, std::vector<int> good) {
    const std::string name = what.what;
    auto got = co_await on_strand(http_->call(std::move(what), limit));
    if (got && std::find(good.begin(), good.end(), got->head.status) == good.end()) {
        co_return from_answer(name, got->head.status, got->body);
    }
    co_return got;
}

task<answer<json::object>> engine_client::call_object(request what, milliseconds limit,
                                                      std::vector<int> good) {
    const std::string name = what.what;
    const auto got = co_await call(std::move(what), limit, std::move(good));
    if (!got) {
        co_return got.error();
    }
    auto parsed = json_object(got->body);
    if (!parsed) {
        co_return no_answer(errc::protocol, "cannot " + name + ": the daemon's answer is no JSON object: " +
                                                words_of(got->body).substr(0, 200));
    }
    co_return std::move(*parsed);
}

task<answer<json::array>> engine_client::call_array(request what, milliseconds limit) {
    const std::string name = what.what;
    const auto got = co_await call(std::move(what), limit, {200});
    if (!got) {
        co_return got.error();
    }
    auto parsed = json_array(got->body);
    if (!parsed) {
        co_return no_answer(errc::protocol, "cannot " + name + ": the daemon's answer is no JSON array");
    }
    co_return std::move(*parsed);
}

task<answer<outcome>> engine_client::call_outcome(request what, milliseconds limit, bool missing_is_fine) {
    const std::string name = what.what;
    const auto got = co_await call(std::move(what), limit, {200, 201, 204, 304, 404});
    if (!got) {
        co_return got.error();
    }
    if (got->head.status == 404) {
        if (!missing_is_fine) {
            co_return from_answer(name, 404, got->body);
        }
        co_return outcome::missing;
    }
    co_return got->head.status == 304 ? outcome::already : outcome::done;
}

task<answer<api_version>> engine_client::ping(milliseconds limit) {
    const auto until = std::chrono::steady_clock::now() + limit;
    const auto agreed = co_await on_strand(http_->version(limit));
    if (!agreed) {
        co_return agreed;
    }
    const auto left = std::chrono::duration_cast<milliseconds>(until - std::chrono::steady_clock::now());
    const auto answered =
        co_await call(get("ping the daemon", "/_ping"), std::max(left, milliseconds(0)), {200});
    if (!answered) {
        co_return answered.error();
    }
    co_return agreed;
}

task<answer<version_info>> engine_client::version(milliseconds limit) {
    const auto told = co_await call_object(get("ask the daemon's version", "/version"), limit, {200});
    if (!told) {
        co_return told.error();
    }
    version_info found;
    found.engine = text_at(*told, "Version").value_or("");
    found.api = text_at(*told, "ApiVersion").value_or("");
    found.oldest_api = text_at(*told, "MinAPIVersion").value_or("");
    found.os = text_at(*told, "Os").value_or("");
    found.architecture = text_at(*told, "Arch").value_or("");
    found.kernel = text_at(*told, "KernelVersion").value_or("");
    co_return found;
}

task<answer<engine_info>> engine_client::info(milliseconds limit) {
    const auto told = co_await call_object(get("ask about the daemon", "/info"), limit, {200});
    if (!told) {
        co_return told.error();
    }
    engine_info found;
    found.id = text_at(*told, "ID").value_or("");
    found.name = text_at(*told, "Name").value_or("");
    found.server_version = text_at(*told, "ServerVersion").value_or("");
    found.os_type = text_at(*told, "OSType").value_or("");
    found.architecture = text_at(*told, "Architecture").value_or("");
    found.storage_driver = text_at(*told, "Driver").value_or("");
    found.cgroup_version = text_at(*told, "CgroupVersion").value_or("1"); // absent on old engines
    found.cgroup_driver = text_at(*told, "CgroupDriver").value_or("");
    found.default_runtime = text_at(*told, "DefaultRuntime").value_or("");
    if (const auto* runtimes = at(*told, "Runtimes"); runtimes != nullptr && runtimes->is_object()) {
        for (const auto& one : runtimes->get_object()) {
            found.runtimes.emplace_back(one.key());
        }
    }
    found.security_options = texts(at(*told, "SecurityOptions"));
    found.warnings = texts(at(*told, "Warnings"));
    found.cpus = count(at(*told, "NCPU"));
    found.memory_bytes = count(at(*told, "MemTotal"));
    found.live_restore = boolean(at(*told, "LiveRestoreEnabled")).value_or(false);
    found.rootless = std::find(found.security_options.begin(), found.security_options.end(),
                               "name=rootless") != found.security_options.end();
    co_return found;
}

result<std::shared_ptr<engine>> create_engine(const boost::asio::any_io_executor& executor,
                                              const endpoint& where, engine_options options) {
    auto made = create_dialer(where, options.client.dial);
    if (!made) {
        return made.error();
    }
    auto http = std::make_shared<client>(boost::asio::make_strand(executor), std::move(*made), where.pinned,
                                         where.path_prefix(), options.client);
    return std::shared_ptr<engine>(std::make_shared<engine_client>(std::move(http), std::move(options)));
}

} // namespace sandboxd::docker
