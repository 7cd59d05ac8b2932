#pragma once

#include "app/backend.hpp"
#include "core/event.hpp"
#include "core/fd.hpp"
#include "sandboxd/config.hpp"
#include "sandboxd/error.hpp"
#include "sandboxd/sandbox.hpp"
#include "store/state_directory.hpp"

#include <functional>
#include <memory>
#include <string>

namespace sandboxd::app {

struct service_parts {
    const settings& config;
    store::state_directory& state;
    backend_choice backend;
    std::string agent;        ///< file of the program inside
    core::unique_fd launcher; ///< the service's end of the launcher's socket; with the oci backend

    // Of a program that the service is a part of (sandboxd/app.hpp).
    std::shared_ptr<sandbox_builder> builder{};   ///< instead of a backend of ours
    std::shared_ptr<core::shared_event> told{};   ///< stops the service, instead of a signal
    std::function<void(std::string)> listening{}; ///< told the first address
};

/// The composition root: builds everything, serves until a stop signal, takes it down in the reverse order.
/// An error when it could not start.
[[nodiscard]] result<void> run_service(service_parts parts);

/// The reference makes it at the first open; here a root that can't be made is known before anything listens.
[[nodiscard]] result<void> make_workspace_root(const std::string& path);

} // namespace sandboxd::app
