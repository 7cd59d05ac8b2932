#pragma once

#include "config/load.hpp"

namespace sandboxd::app {

/// `sandboxd prepare` (contract N10.1): makes the images of the whole allowlist ready, each tried up to three
/// times, and tells on standard error which never became so. The exit status: 0 all are, 1 some are not (or
/// the backend can't be had). Takes nothing from a service that runs beside it.
[[nodiscard]] int prepare(const config::loaded_settings& loaded);

} // namespace sandboxd::app
