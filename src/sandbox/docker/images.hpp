#pragma once

#include "docker/engine.hpp"
#include "sandbox/docker/turns.hpp"

#include <chrono>
#include <memory>
#include <string>

namespace sandboxd::sandboxes::docker_backend {

/// The image of that name; pulled when it is absent (contract 4.1, 4.5), once for all who ask meanwhile, with
/// its progress in the log. errc::start_failed in the daemon's or the registry's words.
[[nodiscard]] task<result<docker::image_details>> find_image(std::shared_ptr<docker::engine> engine,
                                                             std::shared_ptr<turns> one_by_one,
                                                             std::string reference,
                                                             std::chrono::milliseconds pull_limit);

} // namespace sandboxd::sandboxes::docker_backend
