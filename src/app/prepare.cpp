#include "app/prepare.hpp"

#include "app/agent_path.hpp"
#include "app/backend.hpp"
#include "app/oci_parts.hpp"
#include "app/runtimes.hpp"
#include "app/signals.hpp"
#include "cli/run.hpp"
#include "core/gate.hpp"
#include "core/log.hpp"
#include "docker/engine.hpp"
#include "images/keeper.hpp"
#include "images/proxy.hpp"
#include "sandbox/docker/image_source.hpp"
#include "sandbox/oci/image_source.hpp"
#include "store/state_directory.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <iterator>
#include <memory>
#include <string>
#include <unistd.h>
#include <variant>
#include <vector>

namespace sandboxd::app {

namespace asio = boost::asio;

namespace {

constexpr std::uint32_t attempts = 3; // a deploy can wait, a session should not have to
using source_pointer = std::shared_ptr<images::image_source>;

task<result<source_pointer>> docker_source(docker::endpoint where, asio::any_io_executor executor) {
    docker::engine_options how;
    how.config_folder = docker::config_folder(docker::process_environment());
    auto engine = docker::create_engine(executor, where, std::move(how));
    if (!engine) {
        co_return engine.error();
    }
    const bool buildkit = co_await sandboxes::docker_backend::has_buildkit();
    co_return sandboxes::docker_backend::create_image_source(
        {std::move(*engine), buildkit, images::proxy_settings()});
}

struct outcome {
    std::vector<std::string> failed; ///< aliases that are not ready
    int signal = 0;                  ///< that has ended it before
};

/// Those that can't be built at all are not ready either. `background` is what clears up after builds.
task<outcome> make_ready(const settings& config, source_pointer source, asio::any_io_executor executor,
                         core::gate& background) {
    using namespace asio::experimental::awaitable_operators;
    core::gate work;
    images::keeper_options options;
    options.executor = executor;
    options.background = &work;
    options.source = std::move(source);
    options.allowed = allowed_images(config);
    outcome out;
    for (const auto& entry : config.runtimes) {
        bool known = false;
        for (const auto& one : options.allowed) {
            known = known || one.alias == entry.alias;
        }
        if (!known) {
            out.failed.push_back(entry.alias);
        }
    }
    const auto keeper = images::create_keeper(std::move(options));
    {
        stop_signals signals(executor);
        auto first = co_await (keeper->warm(attempts) || signals.next());
        if (const auto* number = std::get_if<int>(&first)) {
            out.signal = *number;
            core::log::info("{}: stopping", name_of_signal(out.signal));
        } else {
            std::ranges::move(std::get<0>(first), std::back_inserter(out.failed));
        }
    }
    keeper->close();
    for (core::gate* one : {&work, &background}) {
        one->close();
        co_await one->drained();
    }
    co_return out;
}

/// The launcher that an oci backend works through, of a state directory that no service uses.
struct oci_half {
    std::unique_ptr<store::state_directory> state;
    core::unique_fd socket;
};

result<oci_half> open_oci(const settings& config) {
    auto state = store::state_directory::open(config.state_dir, std::chrono::milliseconds(0));
    if (!state) {
        auto failure = state.error();
        if (failure.code == errc::unavailable) {
            failure.message += " (a service that runs prepares its runtimes by itself)";
        }
        return failure;
    }
    auto agent = find_agent();
    if (!agent) {
        return agent.error();
    }
    auto socket = start_launcher(*agent, config, **state, {::geteuid(), ::getegid(), {}});
    if (!socket) {
        return socket.error();
    }
    return oci_half{std::move(*state), std::move(*socket)};
}

task<outcome> live_oci(const settings& config, oci_half& parts, core::gate& background) {
    const auto executor = co_await asio::this_coro::executor;
    const auto launcher = launcher::create_client(executor, std::move(parts.socket));
    co_await sandboxes::oci::remove_cut_off_builds(launcher);
    auto out = co_await make_ready(
        config, create_oci_images(parts.state->uuid(), executor, background, launcher), executor, background);
    co_await launcher->close();
    co_return out;
}

task<result<outcome>> live(const settings& config, backend_choice backend, oci_half& oci,
                           core::gate& background) {
    const auto executor = co_await asio::this_coro::executor;
    if (!backend.daemon) {
        co_return co_await live_oci(config, oci, background);
    }
    auto source = co_await docker_source(*backend.daemon, executor);
    if (!source) {
        co_return source.error();
    }
    co_return co_await make_ready(config, std::move(*source), executor, background);
}

int tell(const result<outcome>& ended) {
    if (!ended) {
        cli::complain(ended.error().message);
        return cli::exit_not_prepared;
    }
    if (ended->signal != 0) {
        cli::complain(std::string(name_of_signal(ended->signal)) +
                      " came before all runtimes were ready. What is ready stays.");
        return cli::exit_by_signal + ended->signal;
    }
    if (ended->failed.empty()) {
        return EXIT_SUCCESS;
    }
    std::string names;
    for (const auto& one : ended->failed) {
        names += (names.empty() ? "" : ", ") + one;
    }
    cli::complain("Not prepared: " + names +
                  ". The service tries again when a session asks, which then waits.");
    return cli::exit_not_prepared;
}

} // namespace

int prepare(const config::loaded_settings& loaded) {
    const settings& config = loaded.values;
    core::log::set_level(config.log_level);
    core::log::set_format(config.log_format);
    for (const std::string& note : loaded.notes) {
        core::log::warning("{}", note);
    }
    ignore_broken_pipes();
    auto backend = choose_backend(config, store::state_directory::remembered_backend(config.state_dir));
    if (!backend) {
        cli::complain(backend.error().message);
        return cli::exit_not_prepared;
    }
    oci_half oci;
    if (!backend->daemon) {
        auto opened = open_oci(config); // forks, so before there are threads
        if (!opened) {
            cli::complain(opened.error().message);
            return cli::exit_not_prepared;
        }
        oci = std::move(*opened);
    }
    asio::io_context context(1);
    core::gate background;
    result<outcome> ended = error{errc::internal, "prepare did not end"};
    asio::co_spawn(asio::make_strand(context), live(config, std::move(*backend), oci, background),
                   [&](const std::exception_ptr& thrown, result<outcome> answer) {
                       if (thrown) {
                           std::rethrow_exception(thrown);
                       }
                       ended = std::move(answer);
                       context.stop();
                   });
    context.run();
    return tell(ended);
}

} // namespace sandboxd::app
