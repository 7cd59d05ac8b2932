#pragma once

#include "docker/engine.hpp"
#include "images/keeper.hpp"

#include <memory>
#include <string>

namespace sandboxd::sandboxes::docker_backend {

/// The image of that name, made ready by the keeper where it is absent (contract 4.1, 4.4, 4.5).
/// errc::start_failed in the daemon's or the registry's words.
[[nodiscard]] task<result<docker::image_details>> find_image(std::shared_ptr<docker::engine> engine,
                                                             std::shared_ptr<images::keeper> keeper,
                                                             std::string reference);

} // namespace sandboxd::sandboxes::docker_backend
