#pragma once

#include "http/exchange.hpp"
#include "sandboxd/error.hpp"
#include "wire/fault.hpp"

namespace sandboxd::api {

/// The HTTP status of a failed session call.
[[nodiscard]] unsigned status_of(errc code) noexcept;

/// What a client is told of it. A fault of ours is told in general words; the log has the text.
[[nodiscard]] std::string detail_of(const error& failure);

/// `{"detail": ...}` with that status. A fault of ours is told in general words; the log has the text.
[[nodiscard]] http::reply reply_of(const error& failure);

/// 422 (contract 1.1.5).
[[nodiscard]] http::reply reply_of(const wire::fault_list& faults);

/// 401, the same words whatever is wrong with the token.
[[nodiscard]] http::reply unauthorized();

} // namespace sandboxd::api
