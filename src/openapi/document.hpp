#pragma once

#include "openapi/operation.hpp"

#include <boost/json/object.hpp>

#include <span>
#include <string>

namespace sandboxd::openapi {

/// The OpenAPI 3.1 document of these routes. Throws std::logic_error where a description is not whole (a
/// model or a field without a text, a path parameter or a query that is not known, an id used twice): a bug,
/// found by any test that asks for the document.
[[nodiscard]] boost::json::object document(std::span<const route> routes);

/// The same as text.
[[nodiscard]] std::string document_text(std::span<const route> routes);

} // namespace sandboxd::openapi
