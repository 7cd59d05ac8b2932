#pragma once

#include "http/exchange.hpp"
#include "openapi/operation.hpp"
#include "session/registry.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace sandboxd::api {

/// The service's handler: finds the route and calls it. The registry outlives it. `not_enforced`: what the
/// policy says this host can't enforce (sandbox_builder::notes()).
[[nodiscard]] http::handler create_handler(session::registry& sessions, std::uint64_t max_body_bytes,
                                           std::vector<std::string> not_enforced);

/// Every route with what is told of it, in the order of the table.
[[nodiscard]] std::vector<openapi::route> described_routes();

} // namespace sandboxd::api
