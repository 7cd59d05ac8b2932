#pragma once

#include "core/fd.hpp"
#include "sandboxd/config.hpp"
#include "sandboxd/error.hpp"
#include "store/state_directory.hpp"

namespace sandboxd::app {

/// The composition root: builds everything, serves until a stop signal, takes it down in the reverse order.
/// `launcher` is the service's end of the launcher's socket. An error when it could not start.
[[nodiscard]] result<void> run_service(const settings& config, store::state_directory& state,
                                       core::unique_fd launcher);

} // namespace sandboxd::app
