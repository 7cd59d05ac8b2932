#pragma once

#include "docker/endpoint.hpp"
#include "sandboxd/config.hpp"
#include "sandboxd/error.hpp"

#include <optional>
#include <string>

namespace sandboxd::app {

struct backend_choice {
    std::string name;                       ///< "docker" or "oci"
    std::string why;                        ///< for the start-up line
    std::optional<docker::endpoint> daemon; ///< with docker
};

/// Which backend makes the sandboxes (design.md "Decided" 1): the setting, else what this state directory was
/// used with, else docker where a daemon answers, else oci. A daemon that was asked for (by the setting, by
/// the state directory, by DOCKER_HOST) and does not answer is an error, never a reason to choose another.
/// Blocks for some seconds at most; single-threaded, before anything is started.
[[nodiscard]] result<backend_choice> choose_backend(const settings& config,
                                                    const std::optional<std::string>& remembered);

} // namespace sandboxd::app
