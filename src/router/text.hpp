#pragma once

// Private to the room.

#include <string>
#include <string_view>

namespace sandboxd::router {

/// Escapes decoded once; an invalid one stands for itself; what is then no UTF-8 becomes U+FFFD.
[[nodiscard]] std::string decode(std::string_view text);

/// The same where `+` is a space.
[[nodiscard]] std::string decode_form(std::string_view text);

/// Everything escaped but what a path may hold as it is: letters, digits and -._~/!$&'()*+,;=:@
[[nodiscard]] std::string encode_path(std::string_view path);

} // namespace sandboxd::router
