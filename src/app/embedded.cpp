#include "sandboxd/app.hpp"

#include "app/service.hpp"
#include "config/checked.hpp"
#include "config/load.hpp"
#include "core/event.hpp"
#include "core/log.hpp"

#include <algorithm>
#include <thread>

// The service inside another program: no launcher, no signals, no change of user.

namespace sandboxd {

namespace {

class embedded final : public application {
public:
    embedded(settings config, std::unique_ptr<store::state_directory> state,
             std::shared_ptr<sandbox_builder> builder)
        : config_(std::move(config)), state_(std::move(state)), builder_(std::move(builder)) {}

    result<void> run(std::function<void(std::string address)> listening) override {
        app::service_parts parts{.config = config_,
                                 .state = *state_,
                                 .backend = {std::string(builder_->name()), "as the program brings it", {}},
                                 .agent = {},
                                 .launcher = {},
                                 .builder = builder_,
                                 .told = told_,
                                 .listening = std::move(listening)};
        return app::run_service(std::move(parts));
    }

    void stop() noexcept override { told_->set(); }

private:
    settings config_;
    std::unique_ptr<store::state_directory> state_;
    std::shared_ptr<sandbox_builder> builder_;
    std::shared_ptr<core::shared_event> told_ = std::make_shared<core::shared_event>();
};

error missing(const char* name, const char* way_out) {
    return {errc::invalid, std::string(name) + ": " + way_out};
}

/// Fills in what has a default that depends on others, and checks what the service relies on.
result<void> complete(settings& config) {
    if (config.token.empty()) {
        return missing("token", "must not be empty: clients are told apart by it");
    }
    if (config.state_dir.empty()) {
        return missing("state_dir", "a directory for the service's records is needed");
    }
    if (config.runtimes.empty()) {
        return missing("runtimes", "at least one must be allowed");
    }
    if (config.default_runtime.empty()) {
        config.default_runtime = config.runtimes.front().alias;
    }
    const bool known =
        std::any_of(config.runtimes.begin(), config.runtimes.end(),
                    [&](const runtime_entry& one) { return one.alias == config.default_runtime; });
    if (!known) {
        return missing("default_runtime", "must be one of the runtimes");
    }
    if (config.io_threads <= 0) {
        config.io_threads = std::max<std::int64_t>(1, std::thread::hardware_concurrency());
    }
    if (const auto clash = config::find_clash(config)) {
        return error{errc::invalid, std::string(clash->name) + ": " + clash->cause};
    }
    return {};
}

} // namespace

result<std::unique_ptr<application>> create_app(settings config, std::shared_ptr<sandbox_builder> builder) {
    if (auto fine = complete(config); !fine) {
        return fine.error();
    }
    if (builder == nullptr) {
        return missing("builder", "without one no sandbox can be made");
    }
    core::log::set_level(config.log_level);
    core::log::set_format(config.log_format);
    if (config.workspace_root) {
        if (auto made = app::make_workspace_root(*config.workspace_root); !made) {
            return made.error();
        }
    }
    auto state = store::state_directory::open(config.state_dir);
    if (!state) {
        return state.error();
    }
    return std::make_unique<embedded>(std::move(config), std::move(*state), std::move(builder));
}

result<settings> settings_from_environment() {
    auto loaded = config::load(config::this_environment(), std::nullopt, {}, config::this_host());
    if (!loaded) {
        return loaded.error();
    }
    for (const std::string& note : loaded->notes) {
        core::log::warning("{}", note);
    }
    return std::move(loaded->values);
}

} // namespace sandboxd
