#include "app/service.hpp"

#include "api/routes.hpp"
#include "app/oci_parts.hpp"
#include "app/runtimes.hpp"
#include "app/signals.hpp"
#include "auth/tokens.hpp"
#include "core/clock.hpp"
#include "core/gate.hpp"
#include "core/io_threads.hpp"
#include "core/log.hpp"
#include "core/offload.hpp"
#include "http/server.hpp"
#include "images/keeper.hpp"
#include "images/proxy.hpp"
#include "launcher/client.hpp"
#include "net/listener.hpp"
#include "sandbox/agent_sandbox.hpp"
#include "sandbox/docker/builder.hpp"
#include "sandbox/docker/image_source.hpp"
#include "sandbox/oci/builder.hpp"
#include "sandboxd/version.hpp"
#include "session/registry.hpp"
#include "store/session_store.hpp"
#include "tls/context.hpp"
#include "wire/policy.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <chrono>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <variant>

namespace sandboxd::app {

namespace asio = boost::asio;

namespace {

/// Even without a grace the sessions get this long to write what they know.
constexpr std::chrono::seconds shortest_shutdown{5};

/// Everything the service is made of. Declared in the order of the start, stopped in the reverse (stop()),
/// destroyed in the reverse again.
class service {
public:
    explicit service(service_parts parts)
        : config_(parts.config),
          state_(parts.state),
          backend_(std::move(parts.backend)),
          agent_(std::move(parts.agent)),
          launcher_socket_(std::move(parts.launcher)),
          told_(std::move(parts.told)),
          listening_(std::move(parts.listening)),
          context_(static_cast<int>(config_.io_threads)),
          workers_("workers", static_cast<std::size_t>(config_.max_workers)),
          authority_(config_.token, state_.token_key()),
          clock_(core::system_clock()),
          builder_(std::move(parts.builder)),
          budget_(static_cast<std::uint64_t>(config_.max_inflight_bytes)) {}

    /// The whole life, on the context's threads.
    result<void> run() {
        result<void> outcome;
        auto done = [&](const std::exception_ptr& thrown, result<void> answer) {
            if (thrown) {
                std::rethrow_exception(thrown);
            }
            outcome = std::move(answer);
        };
        asio::co_spawn(asio::make_strand(context_), live(), std::move(done));
        // An exception that comes out of a thread is a bug, and half a service must not go on: it ends the
        // program, and the next start finds the sessions as after any crash.
        core::run_context(context_, static_cast<unsigned>(config_.io_threads));
        return outcome;
    }

private:
    task<result<void>> live() {
        auto served = co_await start();
        if (served) {
            served = co_await serve_until_told();
        }
        // A start that failed was not told to stop: the sessions it found stay for the next one.
        co_await stop(served && config_.on_shutdown == "stop" ? session::shutdown_mode::stop
                                                              : session::shutdown_mode::keep);
        co_return served;
    }

    /// Up to here a stop signal ends the program at once, as a crash would; nothing was promised to anybody.
    task<result<void>> serve_until_told() {
        using namespace asio::experimental::awaitable_operators;
        std::optional<stop_signals> signals;
        if (!told_) {
            signals.emplace(co_await asio::this_coro::executor);
        }
        if (auto opened = open_doors(); !opened) {
            co_return opened.error();
        }
        const auto lost = launcher_ ? launcher_->lost() : std::make_shared<core::shared_event>();
        const auto first = co_await (next_stop(signals) || lost->wait());
        if (const auto* signal = std::get_if<std::string>(&first)) {
            core::log::info("{}: stopping, at most {} s for what is under way", *signal,
                            config_.shutdown_grace);
            co_return result<void>();
        }
        // Sessions answer on, but none can be opened or removed: better to be started again, which finds them
        // all.
        core::log::error(
            "the launcher process has ended: stopping, so that the service can be started again");
        co_return error{errc::unavailable,
                        "the launcher process has ended; sessions and their sandboxes stand: start again"};
    }

    /// What ends the service: a signal's name, or the program it is a part of.
    task<std::string> next_stop(std::optional<stop_signals>& signals) {
        if (signals) {
            co_return name_of_signal(co_await signals->next());
        }
        co_await told_->wait();
        co_return std::string("told to stop");
    }

    task<result<void>> start() {
        auto opened = store::open_sqlite_store(state_.database_path());
        if (!opened) {
            co_return opened.error();
        }
        store_ = std::move(*opened);
        if (auto built = co_await start_backend(); !built) {
            co_return built.error();
        }
        session::environment on{context_,
                                config_,
                                *store_,
                                *builder_,
                                *clock_,
                                workers_,
                                authority_,
                                runtimes_of(config_, keeper_),
                                {wire::parse_policy, wire::policy_text}};
        sessions_ = session::create_registry(std::move(on));
        if (auto found = co_await sessions_->start(); !found) {
            co_return found.error();
        }
        co_return result<void>();
    }

    task<result<void>> start_backend() {
        if (!builder_) {
            auto made = backend_.daemon ? co_await make_docker() : co_await make_oci();
            if (!made) {
                co_return made.error();
            }
            builder_ = std::move(*made);
        }
        if (keeper_ && config_.prewarm) {
            keeper_->begin_warming();
        }
        core::log::info("backend {} ({}), state in {}", backend_.name, backend_.why, state_.path());
        for (const std::string& note : builder_->notes()) {
            core::log::warning("this host: {}", note);
        }
        co_return result<void>();
    }

    task<result<std::shared_ptr<sandbox_builder>>> make_docker() {
        namespace backend = sandboxes::docker_backend;
        docker::engine_options how;
        how.config_folder = docker::config_folder(docker::process_environment());
        auto engine = docker::create_engine(context_.get_executor(), *backend_.daemon, std::move(how));
        if (!engine) {
            co_return engine.error();
        }
        buildkit_ = co_await backend::has_buildkit();
        keeper_ = make_keeper(backend::create_image_source({*engine, buildkit_, images::proxy_settings()}));
        backend::builder_options options;
        options.service_uuid = state_.uuid();
        options.executor = context_.get_executor();
        options.background = &background_;
        options.images = keeper_;
        options.engine = std::move(*engine);
        options.may_be_local = backend_.daemon->kind == docker::transport::unix_socket;
        options.agent_program = agent_;
        options.state_directory = state_.path();
        options.factory = sandboxes::create_agent_sandbox_factory(context_.get_executor(), background_);
        co_return co_await backend::create_builder(std::move(options));
    }

    std::shared_ptr<images::keeper> make_keeper(std::shared_ptr<images::image_source> source) {
        images::keeper_options options;
        options.executor = context_.get_executor();
        options.background = &image_work_;
        options.source = std::move(source);
        options.allowed = allowed_images(config_);
        options.clock = clock_;
        return images::create_keeper(std::move(options));
    }

    task<result<std::shared_ptr<sandbox_builder>>> make_oci() {
        launcher_ = launcher::create_client(context_.get_executor(), std::move(launcher_socket_));
        sandboxes::oci::builder_options options;
        options.service_uuid = state_.uuid();
        options.executor = context_.get_executor();
        options.launcher = launcher_;
        keeper_ =
            make_keeper(create_oci_images(state_.uuid(), context_.get_executor(), background_, launcher_));
        options.images = keeper_;
        options.factory = sandboxes::create_agent_sandbox_factory(context_.get_executor(), background_);
        if (config_.sandbox_uid) {
            options.workspace_uid = static_cast<std::uint32_t>(*config_.sandbox_uid);
        }
        co_return co_await sandboxes::oci::create_builder(std::move(options));
    }

    /// Listens; everything behind the doors stands by then.
    result<void> open_doors() {
        std::shared_ptr<tls::server_context> secure;
        if (config_.tls_cert) {
            auto loaded = tls::load_server(*config_.tls_cert, *config_.tls_key);
            if (!loaded) {
                return error{loaded.error().code,
                             "SANDBOXD_TLS_CERT and SANDBOXD_TLS_KEY: " + loaded.error().message};
            }
            secure = std::move(*loaded);
        }
        auto listeners =
            net::listen_tcp(context_.get_executor(), config_.host, static_cast<std::uint16_t>(config_.port));
        if (!listeners) {
            return error{listeners.error().code,
                         listeners.error().message +
                             ". SANDBOXD_HOST and SANDBOXD_PORT, or --listen, say where"};
        }
        const auto max_body = static_cast<std::uint64_t>(config_.max_body_bytes);
        server_ = http::create_server(api::create_handler(*sessions_, workers_, max_body, facts()), budget_,
                                      http::limits{});
        const std::string first = listeners->front()->address();
        for (auto& one : *listeners) {
            core::log::info("sandboxd {} ({}) listens on {}://{}", version(), commit(),
                            secure ? "https" : "http", one->address());
            server_->listen(std::move(one), secure);
        }
        if (listening_) {
            listening_(first);
        }
        return {};
    }

    [[nodiscard]] api::service_facts facts() const {
        api::service_facts known;
        known.not_enforced = builder_->notes();
        known.buildkit = buildkit_;
        if (keeper_) {
            known.warming = [keeper = keeper_] { return keeper->snapshot(); };
        }
        return known;
    }

    /// Closes the doors, lets what is under way end, takes everything down.
    task<void> stop(session::shutdown_mode mode) {
        const std::chrono::seconds grace(config_.shutdown_grace);
        if (server_) {
            co_await server_->stop(grace);
        }
        if (keeper_) {
            keeper_->close(); // who waits for an image is told, and no more sandboxes come of it
        }
        if (sessions_) {
            co_await sessions_->shutdown(mode, std::max(grace, shortest_shutdown));
        }
        server_.reset();
        sessions_.reset();
        builder_.reset();
        image_work_.close();
        co_await image_work_.drained(); // what was cut off leaves its clearing up to the background
        background_.close();
        co_await background_.drained();
        if (launcher_) {
            co_await launcher_->close();
        }
        if (store_) {
            store_->close();
        }
        core::log::info("stopped");
    }

    const settings& config_;
    store::state_directory& state_;
    backend_choice backend_;
    std::string agent_;
    core::unique_fd launcher_socket_;
    std::shared_ptr<core::shared_event> told_;
    std::function<void(std::string)> listening_;
    asio::io_context context_;
    core::worker_pool workers_;
    auth::token_authority authority_;
    std::shared_ptr<core::clock> clock_;
    core::gate background_; ///< what goes on in the agents' links
    core::gate image_work_; ///< pulls and builds
    std::unique_ptr<store::session_store> store_;
    std::shared_ptr<launcher::client> launcher_;
    std::shared_ptr<images::keeper> keeper_;
    bool buildkit_ = false;
    std::shared_ptr<sandbox_builder> builder_;
    std::unique_ptr<session::registry> sessions_;
    http::memory_budget budget_;
    std::unique_ptr<http::server> server_;
};

} // namespace

result<void> make_workspace_root(const std::string& path) {
    std::error_code failed;
    std::filesystem::create_directories(path, failed);
    if (failed) {
        return error{errc::io, "SANDBOXD_WORKSPACE_ROOT: cannot make " + path + ": " + failed.message()};
    }
    return {};
}

result<void> run_service(service_parts parts) {
    service whole(std::move(parts));
    return whole.run();
}

} // namespace sandboxd::app
