#pragma once

#include "core/offload.hpp"
#include "http/exchange.hpp"
#include "images/keeper.hpp"
#include "openapi/operation.hpp"
#include "session/registry.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace sandboxd::api {

/// What the policy and the health say of the service beside what the registry knows.
struct service_facts {
    std::vector<std::string> not_enforced; ///< what this host can't enforce (sandbox_builder::notes())
    bool buildkit = false;
    std::function<std::vector<images::warming>()> warming; ///< images being made ready; may be empty
};

/// The service's handler: finds the route and calls it. Registry and workers outlive it.
[[nodiscard]] http::handler create_handler(session::registry& sessions, core::worker_pool& workers,
                                           std::uint64_t max_body_bytes, service_facts facts);

/// Every route with what is told of it, in the order of the table.
[[nodiscard]] std::vector<openapi::route> described_routes();

} // namespace sandboxd::api
