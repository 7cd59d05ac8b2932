#pragma once

// docker: a client of the Docker Engine API. Pure parts (endpoint, demultiplexer, JSON readers, bodies) hold
// no sockets; `connection`, `pool` and `client` do the talking on one strand of their own; `engine`
// (engine.hpp) is what other rooms use, from any executor.

#include "sandboxd/error.hpp"

#include <string>
#include <string_view>

namespace sandboxd::docker {

/// A call that failed. `message` keeps the daemon's own words where it had any.
struct engine_error : error {
    int status = 0; ///< HTTP status of the answer; 0 when there was none
    /// No answer came, but the request had left: the daemon may have done, or may still do, what was asked.
    /// Look for the effect (by label, by name) before asking again.
    bool may_have_happened = false;
    bool retryable = false; ///< the same call may work later: rate limit, overload, daemon away
};

template <class T>
using answer = boost::system::result<T, engine_error>;

/// The words of an error body: `{"message": ...}`, else the text itself (old daemons and proxies answer
/// text/plain or HTML; engine-facts A1), without control characters and at most 1 000 bytes. "" for an empty
/// body.
[[nodiscard]] std::string words_of(std::string_view body);

/// An answer with status 400 or higher. `what` names the call: "create the container".
[[nodiscard]] engine_error from_answer(std::string_view what, int status, std::string_view body);

/// The same judgement for an error that came inside a 200 stream (pull, build).
[[nodiscard]] engine_error from_stream(std::string_view what, std::string_view words);

/// No usable answer: errc::unavailable, timeout or protocol.
[[nodiscard]] engine_error no_answer(errc code, std::string message, bool may_have_happened = false);

} // namespace sandboxd::docker
