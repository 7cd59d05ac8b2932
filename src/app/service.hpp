#pragma once

#include "app/backend.hpp"
#include "core/fd.hpp"
#include "sandboxd/config.hpp"
#include "sandboxd/error.hpp"
#include "store/state_directory.hpp"

#include <string>

namespace sandboxd::app {

struct service_parts {
    const settings& config;
    store::state_directory& state;
    backend_choice backend;
    std::string agent;        ///< file of the program inside
    core::unique_fd launcher; ///< the service's end of the launcher's socket; with the oci backend
};

/// The composition root: builds everything, serves until a stop signal, takes it down in the reverse order.
/// An error when it could not start.
[[nodiscard]] result<void> run_service(service_parts parts);

} // namespace sandboxd::app
