#include "http/connection.hpp"

#include <array>
#include <charconv>
#include <stdexcept>

namespace sandboxd::http {

namespace asio = boost::asio;

/// Decides whether the connection goes on, and says so as far as the version needs it.
std::string_view connection::connection_field() {
    keep_ = keep_ && !winding_down_ && framing_ != answer_framing::until_close && body_drainable();
    if (!keep_) {
        linger_ = linger_ || body_left() || input_.size() > 0;
        return "close";
    }
    return head_.version < 11 ? "keep-alive" : std::string_view();
}

void connection::start_answer(unsigned status, const header_list& headers, answer_framing framing,
                              std::uint64_t length) {
    if (answer_ != answer_state::none) {
        throw std::logic_error("a request was answered twice");
    }
    answer_ = answer_state::open;
    framing_ = framing;
    status_ = status;
    output_.clear();
    format_head(output_, status, headers, framing, length, connection_field(), head_.request_id);
}

task<void> connection::send(reply answer) {
    const bool empty = answer.status == 204 || answer.status == 304;
    start_answer(answer.status, answer.headers, empty ? answer_framing::none : answer_framing::length,
                 answer.body.size());
    // The fields of an answer to HEAD are those of a GET, its body is not sent.
    const std::string_view body =
        empty || head_.method == "HEAD" ? std::string_view() : std::string_view(answer.body);
    std::array<asio::const_buffer, 2> buffers{asio::buffer(output_), asio::buffer(body)};
    if (co_await transmit(buffers)) {
        sent_ = body.size();
    }
    answer_ = answer_state::done;
}

task<bool> connection::interim(unsigned status) {
    if (answer_ != answer_state::none) {
        throw std::logic_error("an interim answer comes before the final one");
    }
    if (head_.version < 11) {
        co_return !gone();
    }
    // The first write after a reset of the peer's may still succeed, so the socket is asked as well.
    if (gone()) {
        co_return false;
    }
    output_ = "HTTP/1.1 ";
    output_ += std::to_string(status);
    output_ += ' ';
    output_ += reason_of(status);
    output_ += "\r\n\r\n";
    co_return co_await transmit(output_) && !gone();
}

task<bool> connection::begin(unsigned status, header_list headers) {
    const bool bodyless = head_.method == "HEAD";
    start_answer(status, headers, head_.version < 11 ? answer_framing::until_close : answer_framing::chunked,
                 0);
    if (bodyless) {
        framing_ = answer_framing::none;
    }
    co_return co_await transmit(output_);
}

task<bool> connection::write(std::string_view piece) {
    if (answer_ != answer_state::open) {
        throw std::logic_error("a piece of an answer that is not open");
    }
    if (piece.empty() || framing_ == answer_framing::none) {
        co_return !broken_;
    }
    sent_ += piece.size();
    if (framing_ != answer_framing::chunked) {
        co_return co_await transmit(piece);
    }
    std::array<char, 20> line{};
    char* end = std::to_chars(line.data(), line.data() + 16, piece.size(), 16).ptr;
    *end++ = '\r';
    *end++ = '\n';
    std::array<asio::const_buffer, 3> buffers{
        asio::buffer(line.data(), static_cast<std::size_t>(end - line.data())), asio::buffer(piece),
        asio::buffer(std::string_view("\r\n"))};
    co_return co_await transmit(buffers);
}

task<bool> connection::end() {
    if (answer_ != answer_state::open) {
        throw std::logic_error("the end of an answer that is not open");
    }
    answer_ = answer_state::done;
    if (framing_ != answer_framing::chunked) {
        co_return !broken_;
    }
    co_return co_await transmit("0\r\n\r\n");
}

} // namespace sandboxd::http
