#pragma once

#include "sandboxd/config.hpp"
#include "sandboxd/error.hpp"

#include <boost/json/object.hpp>

namespace sandboxd::config {

/// An operator's own runtime (contract 4.4.1), read and checked as contract 4.4.6 wants. Unknown keys are
/// errors that suggest the nearest name. The error's message names the field.
[[nodiscard]] result<runtime_definition> read_definition(const boost::json::object& object);

} // namespace sandboxd::config
