#pragma once

#include "app/privileges.hpp"
#include "core/gate.hpp"
#include "images/source.hpp"
#include "launcher/client.hpp"
#include "sandboxd/config.hpp"
#include "store/state_directory.hpp"

#include <boost/asio/any_io_executor.hpp>

#include <memory>
#include <string>

namespace sandboxd::app {

/// Forks the launcher of a state directory; before any thread is started, as root (errc::denied otherwise).
/// `service` may connect to the agents' sockets.
[[nodiscard]] result<core::unique_fd> start_launcher(const std::string& agent, const settings& config,
                                                     const store::state_directory& state,
                                                     const account& service);

/// The images of the oci backend, with the credentials and proxy settings of this process's environment.
/// `background` outlives it.
[[nodiscard]] std::shared_ptr<images::image_source>
create_oci_images(const std::string& service_uuid, const boost::asio::any_io_executor& executor,
                  core::gate& background, std::shared_ptr<launcher::client> launcher);

} // namespace sandboxd::app
