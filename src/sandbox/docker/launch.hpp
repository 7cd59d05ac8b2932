#pragma once

// One container from its settings to an agent that answers.

#include "sandbox/docker/agent_volume.hpp"
#include "sandbox/docker/builder.hpp"
#include "sandbox/docker/host.hpp"

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <string>

namespace sandboxd::sandboxes::docker_backend {

/// What the builder and its launches share.
struct workshop {
    builder_options options;
    std::shared_ptr<daemon_watch> watch;
    std::shared_ptr<agent_volume> agents;
    launcher::cgroup_layout cgroups;
    std::atomic<bool> protect_agents{true};  ///< negative out-of-memory scores can be given
    std::atomic<std::int64_t> open_files{0}; ///< hard limit for containers
    std::mutex mutex;
    std::set<std::string> said; ///< what the daemon did not take over, under `mutex`
    /// OCI runtimes ("" is the daemon's own) whose agents do not reach the sockets that the daemon binds for
    /// them, or whose processes can't be told from others by their pid; under `mutex`.
    std::set<std::string> without_dialling;
};

/// Where a slot's socket lies.
[[nodiscard]] std::string door_directory(const workshop& in, const std::string& slot);

/// The host's side of a container that was found or made. With a door its agent dials, else it is attached
/// to. What of `wanted` (may be null) the daemon did not take over is said in the log, once each.
[[nodiscard]] task<result<std::shared_ptr<docker_host>>> host_of(std::shared_ptr<workshop> in,
                                                                 std::string slot, std::string container,
                                                                 std::optional<dial_in> door,
                                                                 const docker::container_spec* wanted);

/// Makes and starts the container of a slot and waits for its agent. What can be put right is (the agent's
/// volume, the limit of open files, the way to the agent) and it is tried again. Nothing of it is left on
/// failure. errc::start_failed in words.
[[nodiscard]] task<result<std::shared_ptr<sandbox>>> launch(std::shared_ptr<workshop> in, sandbox_spec spec,
                                                            std::string slot);

/// Starts the container that a stop has left in the slot (sandbox_spec::keep): its settings are what they
/// were, what it changed is there. Where there is none, as launch() for keeping::layer, errc::gone for
/// keeping::kept. The container stays in the slot on failure.
[[nodiscard]] task<result<std::shared_ptr<sandbox>>> wake(std::shared_ptr<workshop> in, sandbox_spec spec,
                                                          std::string slot);

/// The directory of a slot's socket where there is one, with a door opened in it: its agent dials.
[[nodiscard]] result<std::optional<dial_in>> door_of(const workshop& in, const std::string& slot);

/// The filters that find a slot's containers.
[[nodiscard]] docker::filter_list slot_filters(const workshop& in, const std::string& slot);

/// Removes every container of the slot, and its socket.
[[nodiscard]] task<result<void>> remove_slot(std::shared_ptr<workshop> in, std::string slot);

} // namespace sandboxd::sandboxes::docker_backend
