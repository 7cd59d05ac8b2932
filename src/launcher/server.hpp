#pragma once

#include "core/fd.hpp"
#include "launcher/uid_ranges.hpp"
#include "sandboxd/error.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace sandboxd::launcher {

/// What the launcher is told once, before anything can speak to it.
struct launcher_options {
    std::string state_dir; ///< absolute; exists
    std::string service_uuid;
    std::string agent_path; ///< the static agent binary on this host
    id_span uid_range{0x10000000U, 0x6FFFFFFFU};
    std::uint32_t service_uid = 0; ///< who may connect to the agents' sockets (SANDBOXD_USER)
    std::uint32_t service_gid = 0;
    int lock = -1; ///< descriptor of the state directory's lock: held until the last request is finished
    std::string run_dir = "/run/sandboxd"; ///< shared by all services of this host
    std::vector<std::string> agent_arguments{"serve", "--listen-fd", "3"};
    std::vector<std::string> dialling_arguments{"serve", "--dial"}; ///< the socket's path follows
    std::string runtime = "runc"; ///< the program of the runc adapter; the others go by their names
    /// How long a runtime that is called beside the preparation may wait for it; then it is called again.
    std::chrono::milliseconds config_patience = std::chrono::minutes(1);
};

/// Forks the launcher and answers the service's end of its socket, for create_client(). Call it before any
/// thread is started; only root can (errc::denied otherwise, with the way out). The launcher leaves at the
/// socket's end, after it has finished what is in progress.
[[nodiscard]] result<core::unique_fd> start(const launcher_options& options);

} // namespace sandboxd::launcher
