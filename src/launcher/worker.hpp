#pragma once

#include "launcher/server.hpp"

namespace sandboxd::launcher {

/// The launcher's own loop: takes requests, gives each a process of its own, ends those that overrun their
/// deadline, reaps whatever falls to it. Returns when the service's end is closed and the last request is
/// finished.
void serve(const launcher_options& options, int socket);

} // namespace sandboxd::launcher
