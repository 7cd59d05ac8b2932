#include "http/connection.hpp"

#include <algorithm>

namespace sandboxd::http {

namespace {
/// A counted body up to this size gets its memory at once; a longer one as it comes.
constexpr std::size_t eager_size = 256 * 1024;
constexpr std::size_t first_lease = 16 * 1024;
} // namespace

std::optional<std::uint64_t> connection::declared_length() const noexcept {
    if (facts_.body == head_facts::framing::chunked) {
        return std::nullopt;
    }
    return facts_.length;
}

bool connection::body_left() const noexcept {
    switch (facts_.body) {
    case head_facts::framing::none:
        return false;
    case head_facts::framing::length:
        return body_remaining_ > 0;
    case head_facts::framing::chunked:
        return !chunks_done_;
    }
    return false;
}

/// What is left can be read and discarded, so that the next request on this connection is found. A client
/// that waits for 100 and gets its answer instead may or may not send its body: nobody can tell, so it can't.
bool connection::body_drainable() const noexcept {
    if (!body_left()) {
        return true;
    }
    const bool unasked = facts_.expects_continue && !body_begun_;
    return !body_fault_ && !unasked && !ended_ && body_remaining_ <= shared_.bounds.drain_bytes;
}

void connection::set_body_deadline() {
    const auto now = std::chrono::steady_clock::now();
    const auto pace = std::chrono::seconds(body_received_ / shared_.bounds.min_rate);
    watch_->until(std::min(
        {body_until_, now + shared_.bounds.stall_time, body_began_ + shared_.bounds.stall_time + pace}));
}

/// The way in ended before the body did.
body_fault connection::broken_body() {
    body_fault_ = late_ ? body_fault::too_slow : body_fault::gone;
    keep_ = false;
    return *body_fault_;
}

task<body_result<std::size_t>> connection::pull(char* into, std::size_t size) {
    if (body_fault_) {
        co_return *body_fault_;
    }
    if (!body_left() || size == 0) {
        co_return std::size_t(0);
    }
    if (!body_begun_) {
        body_begun_ = true;
        body_began_ = std::chrono::steady_clock::now();
        if (facts_.expects_continue && input_.size() == 0 && answer_ == answer_state::none) {
            co_await transmit("HTTP/1.1 100 Continue\r\n\r\n");
        }
    }
    if (facts_.body == head_facts::framing::length) {
        co_return co_await pull_counted(into, size);
    }
    co_return co_await pull_chunked(into, size);
}

task<body_result<std::size_t>> connection::pull_counted(char* into, std::size_t size) {
    size = static_cast<std::size_t>(std::min<std::uint64_t>(size, body_remaining_));
    std::size_t bytes = std::min(size, input_.size());
    if (bytes > 0) {
        std::copy_n(static_cast<const char*>(input_.data().data()), bytes, into);
        input_.consume(bytes);
    } else {
        set_body_deadline();
        bytes = co_await receive(boost::asio::buffer(into, size));
        watch_->never();
        if (bytes == 0) {
            co_return broken_body();
        }
    }
    body_remaining_ -= bytes;
    body_received_ += bytes;
    co_return bytes;
}

task<body_result<std::size_t>> connection::pull_chunked(char* into, std::size_t size) {
    namespace http = boost::beast::http;
    parser_->eager(true);
    for (;;) {
        boost::system::error_code failed;
        auto& piece = parser_->get().body();
        piece.data = into;
        piece.size = size;
        piece.more = true;
        if (input_.size() > 0) {
            input_.consume(parser_->put(input_.data(), failed));
        } else {
            failed = http::error::need_more;
        }
        const std::size_t bytes = size - piece.size;
        chunks_done_ = parser_->is_done();
        if (failed && failed != http::error::need_more && failed != http::error::need_buffer) {
            body_fault_ = body_fault::malformed;
            keep_ = false;
            co_return *body_fault_;
        }
        if (bytes > 0 || chunks_done_) {
            body_received_ += bytes;
            co_return bytes;
        }
        // What makes no chunk yet is a chunk's line or the trailer, which are bounded like a head.
        if (input_.size() >= shared_.bounds.head_bytes) {
            body_fault_ = body_fault::malformed;
            keep_ = false;
            co_return *body_fault_;
        }
        set_body_deadline();
        const auto more = co_await receive_more();
        watch_->never();
        if (more == 0) {
            co_return broken_body();
        }
    }
}

task<body_result<std::size_t>> connection::read_some(std::span<char> into) {
    co_return co_await pull(into.data(), into.size());
}

task<body_result<std::string>> connection::read_all(std::uint64_t limit) {
    if (body_fault_) {
        co_return *body_fault_;
    }
    if (facts_.body == head_facts::framing::chunked) {
        co_return co_await read_chunked(limit);
    }
    if (body_remaining_ > limit) {
        co_return body_fault::too_large;
    }
    co_return co_await read_counted();
}

task<body_result<std::string>> connection::read_counted() {
    const auto held = co_await make_room(body_remaining_, false);
    if (!held) {
        co_return held.error();
    }
    std::string all;
    all.reserve(static_cast<std::size_t>(body_remaining_));
    while (body_remaining_ > 0) {
        const std::size_t at = all.size();
        const auto step = static_cast<std::size_t>(std::min<std::uint64_t>(body_remaining_, eager_size));
        all.resize(at + step);
        const auto got = co_await pull(all.data() + at, step);
        if (!got) {
            co_return got.error();
        }
        all.resize(at + *got);
    }
    co_return all;
}

task<body_result<std::string>> connection::read_chunked(std::uint64_t limit) {
    std::string all;
    std::uint64_t held = 0;
    while (body_left()) {
        const std::size_t at = all.size();
        if (at == held) {
            // As much again as there is, so that the string's own growth is covered.
            const std::uint64_t more = std::max<std::uint64_t>(at, first_lease);
            const auto room = co_await make_room(more, false);
            if (!room) {
                co_return room.error();
            }
            held += more;
        }
        // One byte beyond the limit is asked for, to see whether there is one.
        const auto step = static_cast<std::size_t>(
            std::min<std::uint64_t>({held - at, eager_size, limit - std::min<std::uint64_t>(limit, at) + 1}));
        all.resize(at + step);
        const auto got = co_await pull(all.data() + at, step);
        if (!got) {
            co_return got.error();
        }
        all.resize(at + *got);
        if (all.size() > limit) {
            co_return body_fault::too_large;
        }
    }
    co_return all;
}

task<body_result<void>> connection::drain(std::uint64_t limit) {
    std::array<char, 16 * 1024> waste; // NOLINT: written before it is read
    std::uint64_t done = 0;
    while (body_left()) {
        if (done >= limit) {
            co_return body_fault::too_large;
        }
        const auto step = static_cast<std::size_t>(std::min<std::uint64_t>(waste.size(), limit - done));
        const auto got = co_await pull(waste.data(), step);
        if (!got) {
            co_return got.error();
        }
        done += *got;
    }
    co_return body_result<void>();
}

task<body_result<void>> connection::hold(std::uint64_t bytes) {
    co_return co_await make_room(bytes, true);
}

task<body_result<void>> connection::make_room(std::uint64_t bytes, bool present) {
    const auto place = lease_.bytes() == 0 ? memory_budget::order::in_turn : memory_budget::order::ahead;
    const auto wait = shared_.bounds.memory_wait;
    auto taken = present ? co_await shared_.budget.acquire_for_present(bytes, wait, place)
                         : co_await shared_.budget.acquire(bytes, wait, place);
    if (!taken) {
        co_return body_fault::overloaded;
    }
    lease_.add(std::move(*taken));
    co_return body_result<void>();
}

} // namespace sandboxd::http
