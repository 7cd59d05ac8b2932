#pragma once

#include "http/exchange.hpp"
#include "router/table.hpp"

namespace sandboxd::router {

/// Answers a request that no route takes: 404, 405 with Allow, 307 with an absolute Location (contract 1.1.8
/// a). Not for a match that was found.
[[nodiscard]] http::reply unmatched(const http::request_head& head, const match& found);

} // namespace sandboxd::router
