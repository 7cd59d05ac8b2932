#pragma once

#include "images/keeper.hpp"
#include "sandboxd/config.hpp"
#include "session/types.hpp"

#include <memory>
#include <vector>

namespace sandboxd::app {

/// What the session room has to know of runtimes, from the settings, which outlive the answer. Images that
/// have to be built are made known to `keeper`; without one they are refused.
[[nodiscard]] session::runtime_source runtimes_of(const settings& service,
                                                  std::shared_ptr<images::keeper> keeper);

/// The images that the allowlist names. What can't be one, or can't be built, is left out and said in the
/// log: an open of it is told the same.
[[nodiscard]] std::vector<images::wanted_image> allowed_images(const settings& service);

} // namespace sandboxd::app
