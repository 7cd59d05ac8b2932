#pragma once

#include "config/load.hpp"

namespace sandboxd::app {

/// Runs the service until SIGTERM or SIGINT and answers the exit status: 0 after an orderly stop, 1 when it
/// could not start (one line on standard error says why). Call it on the main thread before any other is
/// started.
[[nodiscard]] int serve(const config::loaded_settings& loaded);

} // namespace sandboxd::app
