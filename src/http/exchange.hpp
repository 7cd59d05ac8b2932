#pragma once

// http: the server side of HTTP/1.1. A handler gets an `exchange`: the head of the request, a reader of its
// body and a responder, never a whole body in or out (design.md "Decided" 22). All of it belongs to the
// connection, runs on the connection's strand and is valid until the handler returns.

#include "sandboxd/sandbox.hpp"

#include <boost/system/result.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sandboxd::http {

/// Header fields of an answer. Content-Length, Transfer-Encoding, Connection, Date and X-Request-Id are the
/// connection's business and must not be among them; names and values hold no control characters.
using header_list = std::vector<std::pair<std::string, std::string>>;

/// One field of a request, as sent (the value without surrounding blanks).
struct header_view {
    std::string_view name;
    std::string_view value;
};

/// What is known of a request before its body. The views live as long as the exchange.
struct request_head {
    std::string_view method; ///< as sent, case matters
    std::string_view target; ///< raw: begins with '/', or is "*" (OPTIONS); printable ASCII, no '#'
    unsigned version = 11;   ///< 10 or 11
    std::string_view host;   ///< may be empty
    bool secure = false;     ///< came over TLS
    std::string_view request_id;
    std::string_view peer; ///< "address:port" of the client
    std::span<const header_view> headers;

    /// The first field of that name, whatever its case.
    [[nodiscard]] std::optional<std::string_view> header(std::string_view name) const noexcept;
};

/// Why a body can't be had. After any of them no more of it can be read.
enum class body_fault {
    too_large = 1, ///< more than the limit: 413
    malformed,     ///< broken chunks: 400, the connection is closed
    too_slow,      ///< the deadline passed: 408, the connection is closed
    gone,          ///< the client left: nobody reads an answer
    overloaded,    ///< no memory for it within 10 s (design.md "Decided" 9): 503
};

/// 413, 400, 408, 400, 503.
[[nodiscard]] unsigned status_of(body_fault fault) noexcept;
/// A sentence for the client.
[[nodiscard]] std::string_view text_of(body_fault fault) noexcept;
[[noreturn]] void throw_exception_from_error(body_fault fault, const boost::source_location& where);

template <class T>
using body_result = boost::system::result<T, body_fault>;

/// The body of a request. `100 Continue` goes out when the first byte is asked for, never before. Throws
/// operation_aborted when the coroutine is cancelled.
class body_reader {
public:
    virtual ~body_reader() = default;

    /// Nothing when chunked, 0 without a body.
    [[nodiscard]] virtual std::optional<std::uint64_t> declared_length() const noexcept = 0;

    /// Everything that is left. A declared length above `limit` is too_large at once, before `100 Continue`
    /// is sent. The bytes count against the shared memory budget until the exchange ends.
    [[nodiscard]] virtual task<body_result<std::string>> read_all(std::uint64_t limit) = 0;

    /// Up to `into.size()` bytes (not 0); 0 at the end. Not counted against the budget: the buffer is the
    /// caller's.
    [[nodiscard]] virtual task<body_result<std::size_t>> read_some(std::span<char> into) = 0;

    /// Reads and discards what is left, at most `limit` bytes. The connection does that by itself after an
    /// answer; a handler needs it only to answer after the body.
    [[nodiscard]] virtual task<body_result<void>> drain(std::uint64_t limit) = 0;
};

/// One complete answer.
struct reply {
    unsigned status = 200;
    header_list headers; ///< with Content-Type where there is a body
    std::string body;
};

/// A reply with Content-Type: application/json.
[[nodiscard]] reply json_reply(unsigned status, std::string body);
/// `{"detail": "<text>"}` (contract 1.1.4). Bytes that are not UTF-8 become U+FFFD.
[[nodiscard]] reply detail_reply(unsigned status, std::string_view text);

/// Sends the answer: exactly one of send() and begin()…end(). No call fails loudly when the client has gone:
/// gone() tells. Throws operation_aborted when the coroutine is cancelled, std::logic_error on wrong use.
class responder {
public:
    virtual ~responder() = default;

    /// The whole answer, in one write where it fits. 204 and 304 go without a body.
    [[nodiscard]] virtual task<void> send(reply answer) = 0;

    /// An interim answer such as 102, before the final one. False when the client has gone. HTTP/1.0 clients
    /// get none (true all the same).
    [[nodiscard]] virtual task<bool> interim(unsigned status) = 0;

    /// Starts an answer whose length is not known: chunked, or until the end of the connection for HTTP/1.0.
    [[nodiscard]] virtual task<bool> begin(unsigned status, header_list headers) = 0;
    /// More of it; returns when the connection has taken it. False when the client has gone.
    [[nodiscard]] virtual task<bool> write(std::string_view piece) = 0;
    /// The last call after begin(). An answer that is not ended is cut, so that the client notices.
    [[nodiscard]] virtual task<bool> end() = 0;

    /// send() or begin() was called.
    [[nodiscard]] virtual bool started() const noexcept = 0;

    /// The client has reset the connection or closed both directions: nobody will read an answer. A client
    /// that only shut its sending side still waits for one (contract N19.9) and is not gone. One system call.
    [[nodiscard]] virtual bool gone() const noexcept = 0;

    /// The client has shut its sending side: it waits for its answer, or has left altogether. An interim
    /// answer finds out: gone() is true soon after it then. One system call.
    [[nodiscard]] virtual bool half_closed() const noexcept = 0;
};

/// One request and its answer.
class exchange {
public:
    virtual ~exchange() = default;
    [[nodiscard]] virtual const request_head& head() const noexcept = 0;
    [[nodiscard]] virtual body_reader& body() noexcept = 0;
    [[nodiscard]] virtual responder& answer() noexcept = 0;

    /// Counts memory for a buffered answer, which is there already, against the shared budget until the
    /// exchange ends; waits up to 10 s for room, not at all when many wait. The only fault is overloaded.
    [[nodiscard]] virtual task<body_result<void>> hold(std::uint64_t bytes) = 0;
};

/// Answers one request. Returning without an answer, or an exception that escapes, is a 500 in plain text
/// (contract 1.1.9) and logged. The body need not be read. Runs on the connection's strand; cancelled
/// (terminal) when the server stops and the grace is over.
using handler = std::function<task<void>(exchange&)>;

/// `co_await x.answer().send(detail_reply(status_of(fault), text_of(fault)))`.
[[nodiscard]] task<void> refuse(exchange& x, body_fault fault);

} // namespace sandboxd::http
