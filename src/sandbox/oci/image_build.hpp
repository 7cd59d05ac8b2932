#pragma once

#include "images/build_steps.hpp"
#include "images/recipe.hpp"
#include "launcher/image_config.hpp"
#include "sandbox/oci/image_source.hpp"

#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace sandboxd::sandboxes::oci {

/// Runs the recipe's steps in a sandbox over the base image, with a network where the host can give one, and
/// keeps what they changed as the image of the recipe's tag. Nothing is left of a build that fails or is
/// cancelled. errc::start_failed with the step and the last lines that it printed.
[[nodiscard]] task<result<void>> build_image(image_source_options with, images::recipe what,
                                             launcher::image_info base,
                                             std::shared_ptr<images::build_steps> steps);

/// The variables of an image after a step: `$NAME` and `${NAME}` stand for what `env` holds, where the step
/// says so. Later ones take the place of earlier ones of their name.
void apply_env(launcher::environment& env, const images::step& step);

/// The last lines of what a step has printed, at most 20 of them and 2000 bytes, what is no text left out.
[[nodiscard]] std::string last_lines(std::string_view output);

} // namespace sandboxd::sandboxes::oci
