#pragma once

#include "launcher/blocking/slots.hpp"

namespace sandboxd::launcher::blocking {

/// What a sandbox with a network sees. Addresses inside are the same for all: nobody else is on that link.
inline constexpr const char* network_resolver = "10.0.2.3"; ///< asks the host's own resolver

/// Gives a sandbox that has just been started a user-mode network (pasta, of the Debian package passt):
/// connections out, as the host's own; none in, and none to the host's loopback addresses. The program runs
/// as root of the sandbox's user namespace, in a cgroup beside the sandbox's, where end_network() finds it
/// whatever has become of this service meanwhile. errc::unsupported, in words, where this host can't.
[[nodiscard]] result<void> start_network(const worker_context& context, const std::string& slot, pid_t pid,
                                         deadline until);

/// The cgroup of a slot's network, for the removal.
[[nodiscard]] std::string network_cgroup(const worker_context& context, const std::string& slot);

/// Replaces the root's /etc/resolv.conf, for a sandbox with a network.
[[nodiscard]] result<void> write_resolver(int root, std::uint32_t uid_base);

} // namespace sandboxd::launcher::blocking
