#pragma once

#include "openapi/operation.hpp"
#include "openapi/schema.hpp"

#include <boost/json/object.hpp>

namespace sandboxd::openapi {

/// {"application/json": {"schema": ...}}
[[nodiscard]] boost::json::object in_json(boost::json::object schema);

/// {"application/octet-stream": {"schema": ...}}
[[nodiscard]] boost::json::object in_bytes();

/// Every status of a route: its own, and those of its kind (whose token, what body, which parameters).
[[nodiscard]] boost::json::object responses_of(const route& one, const schema_book& book);

} // namespace sandboxd::openapi
