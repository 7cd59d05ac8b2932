#pragma once

#include <boost/json/value.hpp>

#include <optional>
#include <string>

namespace sandboxd::client {

/// A field of a request that may be null.
inline boost::json::value or_null(const std::optional<std::string>& text) {
    return text ? boost::json::value(*text) : boost::json::value(nullptr);
}

} // namespace sandboxd::client
