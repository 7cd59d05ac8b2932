#include "agent/file_call.hpp"

#include "agent/system.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace sandboxd::agent {

namespace {

using protocol::tag;

/// Of an operation that named no time.
constexpr instant longest = 600 * second;

alignas(file_order) char received[sizeof(file_order) + largest_order];

template <class T>
bool take(T& to, const std::optional<T>& value) {
    to = value.value_or(T{});
    return value.has_value();
}

/// False when the value has the wrong width.
bool take_field(file_request& out, const protocol::field& field) {
    std::uint16_t operation = 0;
    std::uint64_t timeout = 0;
    switch (field.id) {
    case tag::operation:
        if (!take(operation, field.u16())) {
            return false;
        }
        out.operation = static_cast<protocol::file_operation>(operation);
        return true;
    case tag::path:
        out.path = field.value;
        return true;
    case tag::pattern:
        out.pattern = field.value;
        return true;
    case tag::second_path:
        out.second_path = field.value;
        return true;
    case tag::content:
        out.content = field.value;
        return true;
    case tag::open_stdin:
        out.streamed = true;
        return true;
    case tag::length:
        return take(out.length, field.u64());
    case tag::offset:
        return take(out.offset, field.u64());
    case tag::limit_bytes:
        return take(out.limit_bytes, field.u64());
    case tag::option_flags:
        return take(out.options, field.u32());
    case tag::timeout_ms:
        out.timeout_ms = field.u64();
        return take(timeout, field.u64());
    default:
        return true;
    }
}

} // namespace

std::optional<file_request> read_file_request(std::string_view payload) {
    file_request out;
    protocol::field_reader reader(payload);
    protocol::field field;
    while (reader.next(field)) {
        if (!take_field(out, field)) {
            return std::nullopt;
        }
    }
    if (reader.malformed() || out.path.find('\0') != std::string::npos) {
        return std::nullopt;
    }
    return out;
}

file_call::file_call(int socket, int locks, file_request request)
    : socket_(socket), locks_(locks), request_(std::move(request)) {
    constexpr auto most = static_cast<std::uint64_t>(longest / millisecond);
    until_ = now() + static_cast<instant>(std::min(request_.timeout_ms.value_or(most), most)) * millisecond;
}

bool file_call::expired() const {
    return now() >= until_;
}

bool file_call::expired_now_and_then() {
    constexpr unsigned every = 64;
    return ++calls_ % every == 0 && expired();
}

file_call::input file_call::next_input(std::string_view& piece) {
    if (request_.streamed) {
        return input_over_ ? input::end : receive(piece);
    }
    if (input_over_ || request_.content.empty()) {
        return input::end;
    }
    input_over_ = true;
    piece = request_.content;
    return input::piece;
}

file_call::input file_call::receive(std::string_view& piece) {
    pollfd entry{socket_, POLLIN, 0};
    const auto left = std::max<instant>(until_ - now(), 0) / millisecond;
    if (poll(&entry, 1, static_cast<int>(left) + 1) <= 0) {
        return input::broken;
    }
    const auto count = recv(socket_, received, sizeof received, 0);
    file_order head;
    if (count < static_cast<ssize_t>(sizeof head)) {
        input_over_ = true; // at the end of the socket the agent is gone
        return input::broken;
    }
    std::memcpy(&head, received, sizeof head);
    if (head.kind == file_order_kind::input) {
        piece = {received + sizeof head, static_cast<std::size_t>(count) - sizeof head};
        return input::piece;
    }
    input_over_ = true;
    return head.kind == file_order_kind::input_end ? input::end : input::broken;
}

void file_call::send(const file_report& head, std::string_view text, std::string_view bytes) const {
    iovec pieces[3] = {{const_cast<file_report*>(&head), sizeof head},
                       {const_cast<char*>(text.data()), text.size()},
                       {const_cast<char*>(bytes.data()), bytes.size()}};
    msghdr message{};
    message.msg_iov = pieces;
    message.msg_iovlen = 3;
    while (sendmsg(socket_, &message, MSG_NOSIGNAL) < 0) {
        if (errno != EINTR && errno != ENOBUFS) {
            _exit(0); // the agent is gone, or does not want this process any more
        }
    }
}

void file_call::put(std::string_view bytes) {
    total_ += bytes.size();
    while (!bytes.empty()) {
        if (output_.size() == largest_report) {
            send({.kind = file_report_kind::output, .answer = {}}, output_, {});
            output_.clear();
        }
        const auto count = std::min(bytes.size(), largest_report - output_.size());
        output_.append(bytes.substr(0, count));
        bytes.remove_prefix(count);
    }
}

void file_call::finish(const file_answer& answer, std::string_view text) {
    if (output_.size() + text.size() > largest_report) {
        send({.kind = file_report_kind::output, .answer = {}}, output_, {});
        output_.clear();
    }
    const auto size = static_cast<std::uint32_t>(text.size());
    send({.kind = file_report_kind::done, .text_size = size, .answer = answer}, text, output_);
}

void file_call::succeed(std::uint32_t marks, std::uint64_t length) {
    finish({.marks = marks, .length = length}, {});
}

void file_call::fail(int os_errno, std::uint32_t marks) {
    auto kind = protocol::failure_kind::os;
    if (os_errno == ENOENT || (os_errno == ENOTDIR && marks == 0)) {
        kind = protocol::failure_kind::not_found; // it, or a directory on its way
    } else if (os_errno == EISDIR || os_errno == ENOTDIR) {
        kind = protocol::failure_kind::invalid;
    }
    finish({.failure = kind, .os_errno = os_errno, .marks = marks}, {});
}

void file_call::refuse(protocol::failure_kind kind, std::string_view text) {
    finish({.failure = kind}, text);
}

} // namespace sandboxd::agent
