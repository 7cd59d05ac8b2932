#pragma once

// client: programs in C++ and the command line as clients of a service. Everything of one client runs on one
// strand (http_client.hpp); the public classes bring callers there and back. Answers are untrusted: every
// length is bounded, every wait has an end.

#include "sandboxd/client.hpp"

#include <string>
#include <string_view>

namespace sandboxd::client {

/// A service's address, taken apart.
struct service_url {
    bool tls = false;
    std::string host; ///< without brackets
    std::string port;
    std::string prefix;     ///< "" or "/behind/a/proxy"
    std::string host_field; ///< for the Host header: without a default port
    std::string text;       ///< as given, for messages
};

/// fault::invalid tells what is wrong: another scheme, no host, a password, a query.
[[nodiscard]] outcome<service_url> parse_url(std::string_view text);

/// Percent-encodes all but letters, digits and "-._~", for one value of a query.
[[nodiscard]] std::string encoded(std::string_view value);

/// Contract 1.2.1.
[[nodiscard]] bool is_session_id(std::string_view text) noexcept;

/// Fit for a header: no blanks, no control characters, at most 4096 bytes. (A service refuses other than
/// ASCII, in words; an empty one is not sent.)
[[nodiscard]] bool is_token(std::string_view text) noexcept;

} // namespace sandboxd::client
