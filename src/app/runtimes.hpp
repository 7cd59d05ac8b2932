#pragma once

#include "sandboxd/config.hpp"
#include "session/types.hpp"

namespace sandboxd::app {

/// What the session room has to know of runtimes, from the settings, which outlive the answer.
[[nodiscard]] session::runtime_source runtimes_of(const settings& service);

} // namespace sandboxd::app
