#include "app/backend.hpp"

#include "config/resolve.hpp"
#include "core/deadline.hpp"
#include "core/log.hpp"
#include "docker/engine.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <chrono>
#include <exception>

namespace sandboxd::app {

namespace asio = boost::asio;

namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

/// A daemon that is wanted may be starting beside us.
constexpr milliseconds wanted_patience = 15s;
/// One that would only be nice to have is there or isn't.
constexpr milliseconds look_patience = 2s;
constexpr auto between_looks = 500ms;

task<result<void>> ask(std::shared_ptr<docker::engine> engine, milliseconds patience) {
    const auto until = std::chrono::steady_clock::now() + patience;
    for (bool told = false;; told = true) {
        const auto left = std::chrono::duration_cast<milliseconds>(until - std::chrono::steady_clock::now());
        const auto answered = co_await engine->ping(std::max(left, milliseconds(look_patience)));
        if (answered) {
            co_return result<void>();
        }
        if (std::chrono::steady_clock::now() + between_looks >= until || !answered.error().retryable) {
            co_return static_cast<const error&>(answered.error());
        }
        if (!told) {
            core::log::warning("{}: trying again", answered.error().message);
        }
        co_await core::sleep_for(between_looks);
    }
}

/// On a context of its own: nothing of it is left when this returns.
result<void> answers(const docker::endpoint& where, milliseconds patience) {
    asio::io_context context(1);
    auto engine = docker::create_engine(context.get_executor(), where, {});
    if (!engine) {
        return engine.error();
    }
    result<void> outcome;
    asio::co_spawn(context, ask(*engine, patience),
                   [&](const std::exception_ptr& thrown, result<void> answer) {
                       if (thrown) {
                           std::rethrow_exception(thrown);
                       }
                       outcome = std::move(answer);
                       context.stop();
                   });
    context.run();
    return outcome;
}

result<backend_choice> with_docker(std::string why) {
    auto where = docker::resolve_endpoint(docker::process_environment(), docker::disk_files());
    if (!where) {
        return where.error();
    }
    if (auto there = answers(*where, wanted_patience); !there) {
        return error{errc::unavailable, "no docker daemon answers at " + where->text() + " (" +
                                            where->source + "): " + there.error().message};
    }
    why += ", the daemon at " + where->text();
    return backend_choice{"docker", std::move(why), std::move(*where)};
}

result<backend_choice> with_oci(const settings& config, std::string why) {
    if (auto known = config::check_oci_runtimes(config); !known) {
        return known.error();
    }
    return backend_choice{"oci", std::move(why), std::nullopt};
}

result<backend_choice> look_for_daemon(const settings& config) {
    const auto environment = docker::process_environment();
    auto where = docker::resolve_endpoint(environment, docker::disk_files());
    const bool asked_for =
        environment("DOCKER_HOST").has_value() || environment("DOCKER_CONTEXT").has_value();
    if (!where) {
        return asked_for ? where.error() : with_oci(config, where.error().message);
    }
    if (asked_for) {
        return with_docker("as " + where->source + " asks for it");
    }
    if (auto there = answers(*where, look_patience); !there) {
        return with_oci(config, "no docker daemon answers at " + where->text());
    }
    const auto text = where->text();
    return backend_choice{"docker", "a daemon answers at " + text, std::move(*where)};
}

} // namespace

result<backend_choice> choose_backend(const settings& config, const std::optional<std::string>& remembered) {
    const bool set = config.backend.has_value();
    const auto wanted = set ? config.backend : remembered;
    if (!wanted) {
        return look_for_daemon(config);
    }
    const std::string why = set ? "as set" : "as this state directory was used before";
    return *wanted == "docker" ? with_docker(why) : with_oci(config, why);
}

} // namespace sandboxd::app
