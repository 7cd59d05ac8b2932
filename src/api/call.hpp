#pragma once

// api: one file per resource. A handler turns a request into a session call and its answer into a reply; the
// checks that come before a handler's own are in admission.hpp, the table of routes in routes.cpp, statuses
// in errors.hpp. Runs on the connection's strand.

#include "api/routes.hpp"
#include "core/offload.hpp"
#include "http/exchange.hpp"
#include "openapi/operation.hpp"
#include "router/table.hpp"
#include "sandboxd/sandbox.hpp"
#include "session/registry.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace sandboxd::api {

/// What handlers stand on; outlives the server.
struct context {
    session::registry& sessions;
    core::worker_pool& workers;         ///< for what takes long enough to hold others up
    std::uint64_t max_body_bytes;       ///< of one request with a valid token
    std::vector<std::string> endpoints; ///< sorted templates without "/", shown by the index
    service_facts facts;
};

/// One request on its way through a handler.
struct call {
    http::exchange& x;
    const router::match& route;
    const openapi::operation& told;
    const context& on;

    [[nodiscard]] std::string session_id() const { return std::string(route.parameter("session_id")); }
};

} // namespace sandboxd::api
