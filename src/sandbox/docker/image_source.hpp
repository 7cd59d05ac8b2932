#pragma once

#include "docker/engine.hpp"
#include "images/source.hpp"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace sandboxd::sandboxes::docker_backend {

struct image_source_options {
    std::shared_ptr<docker::engine> engine;
    bool buildkit = false; ///< build through `docker buildx` (contract 4.4.7); has_buildkit() tells
    std::vector<std::pair<std::string, std::string>> build_arguments; ///< proxy settings
};

/// The images of a daemon. Pulls go with the credentials that the `docker` command would use; builds by the
/// classic builder of the Engine API, or by `docker buildx`, which then talks to the same daemon as by
/// DOCKER_HOST and the current context.
[[nodiscard]] std::shared_ptr<images::image_source> create_image_source(image_source_options options);

/// Whether `docker buildx version` succeeds within 10 s. Needs a strand.
[[nodiscard]] task<bool> has_buildkit();

} // namespace sandboxd::sandboxes::docker_backend
