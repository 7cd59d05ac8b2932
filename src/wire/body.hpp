#pragma once

#include "wire/fault.hpp"

#include <boost/json/value.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace sandboxd::wire {

/// A request's body after the first step of contract 1.1.8 b; what is wrong with it as a model is told later,
/// when the token has been seen.
struct parsed_body {
    bool present = false;     ///< false: no bytes at all
    boost::json::value value; ///< of bytes that are not to be JSON: a string, so that no model accepts it
};

/// An answer that stands before any other check.
struct body_failure {
    int status = 0;
    std::string body; ///< JSON
};

/// True for application/json and application/*+json, parameters and case aside.
[[nodiscard]] bool is_json_type(std::string_view content_type);

/// Contract 1.1.8 b and N16.13: JSON is parsed when the content type says so or is absent. Broken JSON is a
/// 422, bytes that are no UTF-8 and JSON beyond any request (json_parse.hpp) are a 400.
[[nodiscard]] std::variant<parsed_body, body_failure> parse_body(std::optional<std::string_view> content_type,
                                                                 std::string_view bytes);

} // namespace sandboxd::wire
