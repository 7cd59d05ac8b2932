#include "app/oci_parts.hpp"

#include "docker/endpoint.hpp"
#include "images/proxy.hpp"
#include "launcher/server.hpp"
#include "sandbox/agent_sandbox.hpp"
#include "sandbox/oci/image_source.hpp"
#include "sandbox/oci/registry_auth.hpp"

#include <unistd.h>

namespace sandboxd::app {

result<core::unique_fd> start_launcher(const std::string& agent, const settings& config,
                                       const store::state_directory& state, const account& service) {
    launcher::launcher_options options;
    options.state_dir = state.path();
    options.service_uuid = state.uuid();
    options.agent_path = agent;
    options.uid_range = {config.uid_range.first, config.uid_range.second};
    options.service_uid = service.uid;
    options.service_gid = service.gid;
    options.lock = state.lock();
    return launcher::start(options);
}

std::shared_ptr<images::image_source> create_oci_images(const std::string& service_uuid,
                                                        const boost::asio::any_io_executor& executor,
                                                        core::gate& background,
                                                        std::shared_ptr<launcher::client> launcher) {
    sandboxes::oci::image_source_options options;
    options.service_uuid = service_uuid;
    options.executor = executor;
    options.background = &background;
    options.launcher = std::move(launcher);
    options.factory = sandboxes::create_agent_sandbox_factory(executor, background);
    options.build_environment = images::proxy_settings();
    options.auth_files = sandboxes::oci::auth_files(docker::process_environment(), ::geteuid());
    return sandboxes::oci::create_image_source(std::move(options));
}

} // namespace sandboxd::app
