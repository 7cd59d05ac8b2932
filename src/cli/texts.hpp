#pragma once

#include "config/load.hpp"

#include <string>

namespace sandboxd::cli {

/// `sandboxd --help`; ends with a line end, as all of these.
[[nodiscard]] std::string help_text();

/// `sandboxd --version`: release and commit.
[[nodiscard]] std::string version_text();

/// `sandboxd config`: every setting in force, where it came from, secrets hidden, and which are not yet in
/// effect.
[[nodiscard]] std::string config_text(const config::loaded_settings& loaded);

} // namespace sandboxd::cli
