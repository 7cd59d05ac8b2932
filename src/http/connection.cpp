#include "http/connection.hpp"

#include "core/log.hpp"

#include <boost/asio/error.hpp>
#include <boost/system/system_error.hpp>

#include <algorithm>

namespace sandboxd::http {

namespace {
constexpr std::size_t kept_buffer = 32 * 1024; ///< a larger one is not kept for the next request
} // namespace

connection::connection(const connection_context& shared, net::stream_ptr stream, std::string peer,
                       bool secure)
    : shared_(shared),
      stream_(std::move(stream)),
      peer_(std::move(peer)),
      secure_(secure),
      watch_(std::make_shared<watchdog>(stream_->get_executor(), [this] { expired(); })) {}

connection::~connection() {
    watch_->stop();
}

void connection::wind_down() {
    winding_down_ = true;
    if (phase_ == phase::idle || phase_ == phase::closing) {
        stream_->close();
    }
}

void connection::abort() noexcept {
    aborted_ = true;
    stream_->close();
}

task<void> connection::run() {
    while (keep_ && !winding_down_ && co_await read_head()) {
        co_await serve();
    }
    phase_ = phase::closing;
    if (linger_ && !aborted_ && !broken_) {
        co_await linger();
    }
    stream_->close();
}

void connection::begin_request() {
    phase_ = phase::idle;
    if (input_.size() == 0 && input_.capacity() > kept_buffer) {
        input_ = boost::beast::flat_buffer();
    }
    renew_parser();
    head_looked_at_ = 0;
    fields_.clear();
    head_ = {};
    facts_ = {};
    body_remaining_ = 0;
    body_received_ = 0;
    body_begun_ = false;
    body_until_ = time_point::max();
    chunks_done_ = false;
    body_fault_.reset();
    answer_ = answer_state::none;
    framing_ = answer_framing::length;
    status_ = 0;
    sent_ = 0;
}

void connection::renew_parser() {
    parser_.emplace();
    parser_->header_limit(static_cast<std::uint32_t>(shared_.bounds.head_bytes));
    parser_->body_limit(boost::none);
    parser_->eager(false);
}

/// False when there is no request to serve: the connection is over, or its fault has been answered.
task<bool> connection::read_head() {
    begin_request();
    if (input_.size() == 0) {
        watch_->until(std::chrono::steady_clock::now() + shared_.bounds.idle_time);
        if (co_await receive_more() == 0 || winding_down_) {
            co_return false;
        }
    }
    phase_ = phase::head;
    began_ = std::chrono::steady_clock::now();
    bool first = true;
    while (!co_await parse_head()) {
        if (!keep_) {
            co_return false;
        }
        if (first) {
            // One absolute deadline for the whole head, whatever dribbles.
            watch_->until(began_ + shared_.bounds.head_time);
            first = false;
        }
        if (co_await receive_more() == 0) {
            if (late_) {
                co_await reject({408, "The head of the request came too slowly"});
            }
            co_return false;
        }
    }
    watch_->never();
    co_return true;
}

/// True when the head is complete and in order. Faults are answered here; keep_ is false then.
task<bool> connection::parse_head() {
    // Empty lines before a request are allowed (RFC 9112 2.2).
    while (input_.size() >= 2 &&
           std::string_view(static_cast<const char*>(input_.data().data()), 2) == "\r\n") {
        input_.consume(2);
    }
    const std::string_view said(static_cast<const char*>(input_.data().data()), input_.size());
    if (said.empty() || said == "\r") {
        co_return false;
    }
    // The parser keeps the lines that it has taken, and the whole head is looked at afterwards: it is given
    // the head again from its beginning, but only once its end is there, so that who dribbles costs little.
    constexpr std::string_view end_of_head = "\r\n\r\n";
    const std::size_t from = head_looked_at_ - std::min(head_looked_at_, end_of_head.size() - 1);
    if (head_looked_at_ > 0 && said.size() < shared_.bounds.head_bytes &&
        said.find(end_of_head, from) == std::string_view::npos) {
        head_looked_at_ = said.size();
        co_return false;
    }
    boost::system::error_code failed;
    const std::size_t bytes = parser_->put(input_.data(), failed);
    std::optional<head_fault> fault;
    if (failed == boost::beast::http::error::need_more) {
        if (said.size() < shared_.bounds.head_bytes) {
            head_looked_at_ = said.size();
            renew_parser();
            co_return false;
        }
        failed = boost::beast::http::error::header_limit;
    }
    if (failed == boost::beast::http::error::header_limit) {
        fault = head_fault{431, "The head of the request is too large"};
    } else if (failed) {
        fault = head_fault{400, "The request is malformed"};
    } else {
        fault = understand(bytes);
    }
    if (fault) {
        co_await reject(*fault);
        co_return false;
    }
    co_return true;
}

/// Fills head_ and facts_ from what the parser took, and removes it from the input.
std::optional<head_fault> connection::understand(std::size_t raw_bytes) {
    const auto& message = parser_->get();
    for (const auto& field : message) {
        fields_.push_back({field.name_string(), field.value()});
    }
    head_.method = message.method_string();
    head_.target = message.target();
    head_.version = message.version();
    head_.headers = fields_;
    head_.secure = secure_;
    head_.peer = peer_;
    facts_ = check_head(head_.method, head_.target, head_.version, fields_);
    head_.host = facts_.host;
    if (facts_.request_id.empty()) {
        request_id_ = new_request_id();
        head_.request_id = request_id_;
    } else {
        head_.request_id = facts_.request_id;
    }
    body_remaining_ = facts_.body == head_facts::framing::length ? facts_.length : 0;
    const auto raw = check_raw({static_cast<const char*>(input_.data().data()), raw_bytes});
    input_.consume(raw_bytes);
    keep_ = parser_->keep_alive();
    return raw ? raw : facts_.fault;
}

/// Answers a head that can't be served and ends the connection.
task<void> connection::reject(head_fault fault) {
    if (head_.request_id.empty()) {
        request_id_ = new_request_id();
        head_.request_id = request_id_;
    }
    keep_ = false;
    linger_ = true;
    co_await send(detail_reply(fault.status, fault.text));
    log_access();
}

task<void> connection::serve() {
    phase_ = phase::handler;
    co_await call_handler();
    if (aborted_) {
        keep_ = false;
    } else if (answer_ == answer_state::none) {
        reply fault;
        fault.status = 500;
        fault.headers.emplace_back("Content-Type", "text/plain; charset=utf-8");
        fault.body = "Internal Server Error";
        co_await send(std::move(fault));
    } else if (answer_ == answer_state::open) {
        keep_ = false; // cut, so that nobody takes half an answer for a whole one
        linger_ = false;
    }
    log_access();
    lease_.release();
    if (keep_ && body_left()) {
        co_await finish_body();
    }
    keep_ = keep_ && !broken_;
}

task<void> connection::call_handler() {
    try {
        co_await shared_.on_request(*this);
        if (answer_ == answer_state::none && !gone()) {
            core::log::error("{} {}: the handler gave no answer (request {})", head_.method, head_.target,
                             head_.request_id);
        }
    } catch (const boost::system::system_error& e) {
        if (!aborted_ || e.code() != boost::asio::error::operation_aborted) {
            core::log::error("{} failed: {} (request {})", head_.method, e.what(), head_.request_id);
        }
    } catch (const std::exception& e) {
        core::log::error("{} failed: {} (request {})", head_.method, e.what(), head_.request_id);
    }
}

/// Reads what is left of a body after the answer.
task<void> connection::finish_body() {
    std::array<char, 16 * 1024> waste; // NOLINT: written before it is read
    body_until_ = std::chrono::steady_clock::now() + shared_.bounds.drain_time;
    std::uint64_t done = 0;
    while (body_left()) {
        if (done > shared_.bounds.drain_bytes || std::chrono::steady_clock::now() > body_until_) {
            keep_ = false;
            linger_ = true;
            co_return;
        }
        const auto got = co_await pull(waste.data(), waste.size());
        if (!got) {
            keep_ = false;
            linger_ = *body_fault_ == body_fault::malformed;
            co_return;
        }
        done += *got;
    }
}

/// Closing with bytes unread resets the connection, and the reset may overtake the answer: the sending side
/// is shut, and what comes is thrown away for a short time (RFC 9112 9.6).
task<void> connection::linger() {
    watch_->until(std::chrono::steady_clock::now() + shared_.bounds.linger_time);
    stream_->shutdown_send();
    std::array<char, 16 * 1024> waste; // NOLINT: written before it is read
    while (co_await receive(boost::asio::buffer(waste)) != 0) {
    }
    watch_->never();
}

void connection::log_access() const {
    if (!core::log::enabled(core::log::level::info)) {
        return;
    }
    const auto path = head_.target.substr(0, head_.target.find('?'));
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - began_;
    core::log::info("{} {} {} {} bytes {:.1f} ms id={} peer={}", head_.method.empty() ? "-" : head_.method,
                    path.empty() ? "-" : path, status_, sent_, took.count(), head_.request_id, peer_);
}

} // namespace sandboxd::http
