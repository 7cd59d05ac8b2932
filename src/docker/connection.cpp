#include "docker/connection.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>

#include <poll.h>

namespace sandboxd::docker {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;

namespace {

constexpr std::size_t largest_head = 64 * 1024;
constexpr std::size_t buffer_size = 128 * 1024;
constexpr auto tuple = asio::as_tuple(asio::use_awaitable);

std::string head_of(const request& what, const std::string& prefix, const std::string& host) {
    std::string head = what.method + " " + prefix + what.target + " HTTP/1.1\r\nHost: " + host +
                       "\r\nUser-Agent: sandboxd\r\nAccept-Encoding: identity\r\n";
    for (const auto& [name, value] : what.fields) {
        head += name + ": " + value + "\r\n";
    }
    if (!what.content_type.empty()) {
        head += "Content-Type: " + what.content_type + "\r\n";
    }
    if (!what.body.empty() || what.method == "POST" || what.method == "PUT") {
        head += "Content-Length: " + std::to_string(what.body.size()) + "\r\n";
    }
    head += what.upgrade ? "Connection: Upgrade\r\nUpgrade: tcp\r\n\r\n" : "\r\n";
    return head;
}

} // namespace

struct connection::state {
    using parser_type = http::response_parser<http::buffer_body>;

    explicit state(net::stream_ptr one) : stream(std::move(one)), buffer(buffer_size) {}

    parser_type& fresh(bool head_only) {
        parser.emplace();
        parser->header_limit(largest_head);
        parser->body_limit(boost::none);
        parser->skip(head_only);
        return *parser;
    }

    net::stream_ptr stream;
    boost::beast::flat_buffer buffer;
    std::optional<parser_type> parser;
    bool answered = false;
    bool failed = false;
};

connection::connection(dialed link, std::string host)
    : state_(std::make_unique<state>(std::move(link.stream))),
      host_(std::move(host)),
      complaint_(std::move(link.complaint)) {}

connection::~connection() = default;

engine_error connection::broken(const error_code& why) const {
    const bool end = why == asio::error::eof || why == http::error::end_of_stream;
    std::string message = "the connection to the daemon " +
                          (end ? std::string("ended without an answer") : "broke: " + why.message());
    if (complaint_) {
        if (const auto said = complaint_(); !said.empty()) {
            message += " (" + said + ")";
        }
    }
    return no_answer(errc::unavailable, std::move(message));
}

task<answer<void>> connection::send(const request& what, std::string prefix) {
    ++exchanges_;
    state_->answered = false;
    state_->parser.reset();
    const std::string head = head_of(what, prefix, host_);
    const std::array<asio::const_buffer, 2> both{asio::buffer(head), asio::buffer(what.body)};
    const auto [failed, size] = co_await asio::async_write(*state_->stream, both, tuple);
    if (failed) {
        state_->failed = true;
        co_return broken(failed);
    }
    co_return answer<void>();
}

task<answer<response_head>> connection::read_head(bool head_only) {
    while (true) {
        auto& parser = state_->fresh(head_only);
        const auto [failed, size] =
            co_await http::async_read_header(*state_->stream, state_->buffer, parser, tuple);
        state_->answered = state_->answered || size > 0;
        if (failed) {
            state_->failed = true;
            const bool lost = failed == http::error::end_of_stream ||
                              failed == http::error::partial_message ||
                              failed.category() != make_error_code(http::error::bad_status).category();
            co_return lost ? broken(failed)
                           : no_answer(errc::protocol, "the daemon's answer is no HTTP: " + failed.message());
        }
        const auto& message = parser.get();
        const int status = message.result_int() > 999 ? 0 : static_cast<int>(message.result_int());
        if (status / 100 == 1 && status != 101) {
            continue;
        }
        response_head head;
        head.status = status;
        head.content_type = std::string(message[http::field::content_type]);
        head.api_version = std::string(message["Api-Version"]);
        head.chunked = parser.chunked();
        head.sized = parser.content_length().has_value();
        co_return head;
    }
}

task<answer<std::size_t>> connection::read_some(std::span<char> into) {
    auto& parser = *state_->parser;
    while (!parser.is_done()) {
        auto& body = parser.get().body();
        body.data = into.data();
        body.size = into.size();
        body.more = true;
        auto [failed, size] = co_await http::async_read_some(*state_->stream, state_->buffer, parser, tuple);
        const std::size_t got = into.size() - body.size;
        body.data = nullptr;
        body.size = 0;
        if (failed == http::error::need_buffer) {
            failed = {};
        }
        if (got > 0) {
            state_->failed = state_->failed || failed;
            co_return got;
        }
        if (failed) {
            state_->failed = true;
            co_return no_answer(errc::protocol, "the daemon's answer was cut: " + failed.message());
        }
    }
    co_return std::size_t{0};
}

bool connection::answered() const noexcept {
    return state_->answered;
}

bool connection::reusable() const noexcept {
    return !state_->failed && state_->stream != nullptr && state_->parser && state_->parser->is_done() &&
           state_->parser->keep_alive() && state_->buffer.size() == 0 &&
           state_->parser->get().result_int() != 101;
}

bool connection::quiet() const noexcept {
    pollfd asked{.fd = state_->stream->native_handle(), .events = POLLIN | POLLRDHUP, .revents = 0};
    return ::poll(&asked, 1, 0) == 0;
}

net::stream_ptr connection::hijack(bool chunked, bool demultiplex, side_sink side) {
    stream_filter filter;
    const auto rest = state_->buffer.data();
    filter.leftover.assign(static_cast<const char*>(rest.data()), rest.size());
    filter.chunked = chunked;
    filter.demultiplex = demultiplex;
    filter.side = std::move(side);
    return filtered(std::move(state_->stream), std::move(filter));
}

} // namespace sandboxd::docker
