#pragma once

#include "docker/error.hpp"

#include <string>
#include <string_view>

namespace sandboxd::docker {

/// "python:3.12-slim", "ghcr.io/a/b@sha256:...": the parts a pull needs.
struct image_ref {
    std::string name;     ///< without tag and digest
    std::string tag;      ///< tag or digest; never empty (an empty tag would pull all of them)
    std::string registry; ///< "docker.io", "ghcr.io", "localhost:5000"
};

/// errc::invalid for what can't be a reference.
[[nodiscard]] answer<image_ref> parse_image(std::string_view text);

} // namespace sandboxd::docker
