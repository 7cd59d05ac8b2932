#pragma once

#include "http/exchange.hpp"
#include "session/registry.hpp"

#include <cstdint>

namespace sandboxd::api {

/// The service's handler: finds the route and calls it. The registry outlives it.
[[nodiscard]] http::handler create_handler(session::registry& sessions, std::uint64_t max_body_bytes);

} // namespace sandboxd::api
