#pragma once

#include "launcher/cgroups.hpp"
#include "launcher/client.hpp"
#include "sandbox/sandbox_host.hpp"

#include <memory>
#include <string>

namespace sandboxd::sandboxes::oci {

/// The host's side of one sandbox that runs. Dropping it leaves the sandbox alone: it is found again by its
/// slot.
[[nodiscard]] std::shared_ptr<sandbox_host> create_host(boost::asio::any_io_executor executor,
                                                        std::shared_ptr<launcher::client> launcher,
                                                        std::string slot, std::string cgroup,
                                                        const launcher::cgroup_layout& cgroups,
                                                        launcher::live_sandbox live);

} // namespace sandboxd::sandboxes::oci
