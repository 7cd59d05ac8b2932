#pragma once

#include "sandboxd/sandbox.hpp"

#include <memory>
#include <string>

namespace sandboxd::app {

/// Returns the name of the first SIGTERM or SIGINT that arrives. A second one while the stop lasts ends the
/// program at once, so that an impatient operator is never stuck.
[[nodiscard]] task<std::string> stop_signal();

/// A write to a client that has left must be an error, not the end of the program.
void ignore_broken_pipes();

} // namespace sandboxd::app
