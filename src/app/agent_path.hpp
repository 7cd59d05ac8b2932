#pragma once

#include "sandboxd/error.hpp"

#include <string>

namespace sandboxd::app {

/// Where `sandboxd-agent` is: beside this program, or in ../libexec/sandboxd. errc::not_found names both
/// places.
[[nodiscard]] result<std::string> find_agent();

} // namespace sandboxd::app
