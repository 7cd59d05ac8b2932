#include "client/connection.hpp"

#include "core/deadline.hpp"
#include "sandboxd/version.hpp"

#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/throw_exception.hpp>

#include <poll.h>

namespace sandboxd::client {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;

namespace {

constexpr std::size_t largest_head = 64 * 1024;
constexpr std::size_t buffer_size = 64 * 1024;
constexpr std::size_t send_piece = 256 * 1024;
constexpr int most_interims = 500; ///< 102s of one answer
constexpr auto tuple = asio::as_tuple(asio::use_awaitable);

std::string head_of(const http_request& what, const std::string& prefix, const std::string& host) {
    std::string head = what.method + " " + prefix + what.target + " HTTP/1.1\r\nHost: " + host +
                       "\r\nUser-Agent: sandboxd-client/" + version() +
                       "\r\nAccept: */*\r\nAccept-Encoding: identity\r\n";
    if (!what.token.empty()) {
        head += "X-Sandbox-Token: " + what.token + "\r\n";
    }
    if (!what.content_type.empty()) {
        head += "Content-Type: " + what.content_type + "\r\n";
    }
    if (!what.body.empty() || what.method == "POST" || what.method == "PUT") {
        head += "Content-Length: " + std::to_string(what.body.size()) + "\r\n";
    }
    return head + "\r\n";
}

/// What Asio hands back, out of a coroutine that may be given up.
struct transfer {
    error_code failed;
    std::size_t size = 0;
};

} // namespace

struct connection::state {
    using parser_type = http::response_parser<http::buffer_body>;

    state(net::stream_ptr one, std::string host, std::string path, std::size_t largest)
        : stream(std::move(one)),
          host_field(std::move(host)),
          prefix(std::move(path)),
          max_answer(largest),
          buffer(buffer_size) {}

    task<transfer> write(asio::const_buffer bytes) {
        const auto [failed, size] = co_await asio::async_write(*stream, bytes, tuple);
        co_return transfer{failed, size};
    }
    task<transfer> read_head() {
        const auto [failed, size] = co_await http::async_read_header(*stream, buffer, *parser, tuple);
        co_return transfer{failed, size};
    }
    task<transfer> read_body() {
        const auto [failed, size] = co_await http::async_read_some(*stream, buffer, *parser, tuple);
        co_return transfer{failed, size};
    }

    /// "" when all was sent.
    task<std::string> send(const http_request& what);
    task<std::optional<broken_exchange>> receive_head(const http_request& what,
                                                      const std::string& send_fault);
    task<boost::system::result<http_answer, broken_exchange>> receive(const http_request& what,
                                                                      std::string send_fault);

    net::stream_ptr stream;
    std::string host_field;
    std::string prefix;
    std::size_t max_answer;
    boost::beast::flat_buffer buffer;
    std::optional<parser_type> parser;
    std::string part = std::string(buffer_size, '\0');
    unsigned exchanges = 0;
    bool whole = false; ///< the last request was sent whole and its answer read whole
};

connection::connection(net::stream_ptr stream, std::string host_field, std::string prefix,
                       std::size_t max_answer)
    : state_(
          std::make_unique<state>(std::move(stream), std::move(host_field), std::move(prefix), max_answer)) {}

connection::~connection() = default;

task<std::string> connection::state::send(const http_request& what) {
    const std::string head = head_of(what, prefix, host_field);
    // A small body goes along with the head, in one segment.
    const bool small = what.body.size() <= send_piece;
    const std::string first = small ? head + what.body : head;
    std::vector<std::string_view> pieces{first};
    for (std::size_t at = 0; !small && at < what.body.size(); at += send_piece) {
        pieces.push_back(std::string_view(what.body).substr(at, send_piece));
    }
    std::uint64_t moved = 0;
    for (const auto piece : pieces) {
        const auto done = co_await core::with_timeout(write(asio::buffer(piece)), what.silence);
        if (!done) {
            co_return "it took nothing for too long";
        }
        if (done->failed) {
            co_return done->failed.message();
        }
        if (what.sent && piece.data() != first.data()) {
            moved += piece.size();
            what.sent(moved, what.body.size());
        }
    }
    co_return std::string();
}

task<std::optional<broken_exchange>> connection::state::receive_head(const http_request& what,
                                                                     const std::string& send_fault) {
    broken_exchange fault;
    fault.sent = send_fault.empty();
    for (int interim = 0; interim < most_interims; ++interim) {
        parser.emplace();
        parser->header_limit(largest_head);
        parser->body_limit(boost::none); // receive() has its own
        const auto done = co_await core::with_timeout(read_head(), what.silence);
        if (!done) {
            fault.why = "no answer came in time";
            co_return fault;
        }
        fault.answered = fault.answered || done->size > 0;
        if (done->failed) {
            const bool cut = done->failed == http::error::end_of_stream || done->failed == asio::error::eof ||
                             done->failed == http::error::partial_message;
            const bool http_fault =
                done->failed.category() == make_error_code(http::error::bad_status).category();
            fault.malformed = http_fault && !cut;
            fault.closed = !fault.malformed;
            fault.why = !send_fault.empty() ? send_fault
                        : cut               ? "the connection ended without an answer"
                        : http_fault        ? "what it answers is no HTTP (" + done->failed.message() + ")"
                                            : done->failed.message();
            co_return fault;
        }
        const auto status = parser->get().result_int();
        if (status >= 200) {
            co_return std::nullopt;
        }
        if (status == 101) {
            break;
        }
    }
    fault.malformed = true;
    fault.why = "it answers with nothing but interim answers";
    co_return fault;
}

task<boost::system::result<http_answer, broken_exchange>> connection::state::receive(const http_request& what,
                                                                                     std::string send_fault) {
    if (auto fault = co_await receive_head(what, send_fault)) {
        co_return std::move(*fault);
    }
    http_answer answer;
    answer.status = static_cast<int>(parser->get().result_int());
    answer.truncated = parser->get()["X-Sandbox-Truncated"] == "true";
    std::optional<std::uint64_t> expected;
    if (const auto length = parser->content_length()) {
        expected = *length;
    }
    const auto too_large = [&] {
        return broken_exchange{.why = "its answer is larger than " + std::to_string(max_answer) + " bytes",
                               .sent = true,
                               .answered = true,
                               .malformed = true};
    };
    if (expected.value_or(0) > max_answer) {
        co_return too_large();
    }
    while (!parser->is_done()) {
        auto& body = parser->get().body();
        body.data = part.data();
        body.size = part.size();
        body.more = true;
        const auto done = co_await core::with_timeout(read_body(), what.silence);
        const std::size_t got = part.size() - body.size;
        if (done) {
            answer.body.append(part.data(), got);
        }
        if (answer.body.size() > max_answer) {
            co_return too_large();
        }
        if (!done || (done->failed && done->failed != http::error::need_buffer)) {
            co_return broken_exchange{.why = done ? "the answer was cut: " + done->failed.message()
                                                  : "the answer stopped coming",
                                      .sent = true,
                                      .answered = true};
        }
        if (what.received && got > 0) {
            what.received(answer.body.size(), expected);
        }
    }
    whole = send_fault.empty();
    co_return answer;
}

task<boost::system::result<http_answer, broken_exchange>> connection::exchange(const http_request& what) {
    ++state_->exchanges;
    state_->whole = false;
    // Where it can't be sent whole, an answer may be there all the same: a refusal that did not wait for the
    // body.
    std::string fault = co_await state_->send(what);
    co_return co_await state_->receive(what, std::move(fault));
}

bool connection::reusable() const noexcept {
    return state_->whole && state_->parser && state_->parser->keep_alive() && state_->buffer.size() == 0;
}

bool connection::quiet() const noexcept {
    if (state_->stream->native_handle() < 0) {
        return true; // no descriptor to ask: in memory
    }
    pollfd asked{.fd = state_->stream->native_handle(), .events = POLLIN | POLLRDHUP, .revents = 0};
    return ::poll(&asked, 1, 0) == 0;
}

bool connection::used() const noexcept {
    return state_->exchanges > 1;
}

void throw_exception_from_error(const broken_exchange& what, const boost::source_location& where) {
    boost::throw_exception(std::logic_error(what.why), where);
}

} // namespace sandboxd::client
