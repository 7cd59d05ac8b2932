#pragma once

// The way to an agent through `docker exec` ("Decided" 5): `sandboxd-agent bridge NAME` joins its standard
// streams with the agent that listens under that name. The name is an abstract socket's: the image needs no
// place that can be written, and the sandbox's network namespace bounds who can reach it.

#include "agent/descriptor.hpp"

namespace sandboxd::agent {

/// Not valid when the name is taken or can't be had.
[[nodiscard]] descriptor listen_for_bridge(const char* name);

/// Is the other end a process that was put into the sandbox from outside (its parent has no pid here)? No
/// command can make one of these.
[[nodiscard]] bool comes_from_outside(int socket);

/// The relay, until one side ends. Where nobody listens under the name, an agent is started first that lives
/// on by itself: that is how a container that runs without one is entered. Returns the exit status.
[[nodiscard]] int run_bridge(const char* name);

} // namespace sandboxd::agent
