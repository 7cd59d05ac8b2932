#pragma once

#include "client/url.hpp"
#include "net/stream.hpp"

#include <functional>
#include <memory>

namespace sandboxd::client {

/// Bytes moved so far, and how many there will be where that is known.
using progress = std::function<void(std::uint64_t moved, std::optional<std::uint64_t> of)>;

struct http_request {
    std::string method = "POST";
    std::string target; ///< path and query below the service's own prefix
    std::string token;
    std::string content_type; ///< of the body; "" sends none
    std::string body;
    /// It may be done twice: sent again when a kept connection turns out to have been closed.
    bool repeatable = false;
    /// The longest time in which nothing comes or goes. An interim answer starts it anew (the service sends
    /// those while an open takes long).
    std::chrono::milliseconds silence{60'000};
    progress sent;
    progress received;
};

struct http_answer {
    int status = 0;
    std::string body;
    bool truncated = false; ///< X-Sandbox-Truncated: a listing that is not complete
};

/// Why an exchange came to nothing.
struct broken_exchange {
    std::string why;
    bool closed = false;    ///< the connection was lost; otherwise time ran out, or the answer is at fault
    bool sent = false;      ///< the service may have the whole request
    bool answered = false;  ///< a part of an answer came
    bool malformed = false; ///< what came is no HTTP, or larger than allowed
};

/// One connection and the exchanges on it, one after the other. Used by one coroutine at a time, on its
/// executor's strand.
class connection {
public:
    /// `max_answer` in bytes of one body.
    connection(net::stream_ptr stream, std::string host_field, std::string prefix, std::size_t max_answer);
    ~connection();

    [[nodiscard]] task<boost::system::result<http_answer, broken_exchange>>
    exchange(const http_request& what);

    /// The last answer was read to its end and another request may follow.
    [[nodiscard]] bool reusable() const noexcept;
    /// Not closed by the service, and nothing came that nobody asked for.
    [[nodiscard]] bool quiet() const noexcept;
    [[nodiscard]] bool used() const noexcept;

private:
    struct state;
    std::unique_ptr<state> state_;
};

/// broken_exchange is never turned into an exception.
[[noreturn]] void throw_exception_from_error(const broken_exchange& what,
                                             const boost::source_location& where);

} // namespace sandboxd::client
