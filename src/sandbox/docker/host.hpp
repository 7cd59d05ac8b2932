#pragma once

#include "launcher/cgroups.hpp"
#include "sandbox/docker/dial_in.hpp"
#include "sandbox/docker/local.hpp"
#include "sandbox/docker/watch.hpp"
#include "sandbox/sandbox_host.hpp"

#include <memory>
#include <optional>
#include <string>

namespace sandboxd::sandboxes::docker_backend {

/// How the service reaches the agent of a container ("Decided" 5).
enum class transport : unsigned char {
    attach, ///< the agent serves its standard streams
    dial,   ///< it dials a socket of ours; the daemon is on this host
    bridge  ///< one `docker exec` of its relay
};

struct host_parts {
    boost::asio::any_io_executor executor;
    std::shared_ptr<docker::engine> engine;
    std::shared_ptr<daemon_watch> watch;
    std::string slot;
    std::string container; ///< its full id
    transport how = transport::attach;
    std::shared_ptr<container_fate> fate;
    bool keep = false;                                ///< a stop without purge leaves the container, ended
    std::optional<dial_in> door;                      ///< with transport::dial
    std::string door_directory;                       ///< removed at the end; "" for none
    std::optional<local_process> process;             ///< where the daemon's processes can be seen from here
    const launcher::cgroup_layout* cgroups = nullptr; ///< outlives the host
};

class docker_host : public sandbox_host {
public:
    /// What the last connection was made by: the bridge where the transport asked for did not work.
    [[nodiscard]] virtual transport used() const noexcept = 0;
    /// A connection of its agent's could be told from one of somebody else.
    [[nodiscard]] virtual bool may_be_dialled_by() const noexcept = 0;
};

/// The host's side of one container that runs. Dropping it leaves the container alone: it is found again by
/// its slot's label.
[[nodiscard]] std::shared_ptr<docker_host> create_host(host_parts parts);

} // namespace sandboxd::sandboxes::docker_backend
