#include "agent/agent.hpp"

#include "agent/bridge.hpp"
#include "agent/buffers.hpp"
#include "agent/system.hpp"
#include "protocol/handshake.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>

namespace sandboxd::agent {

namespace {

using protocol::frame_type;
using protocol::parse_status;

constexpr std::size_t most_connections = 8;
constexpr instant hello_limit = 10 * second;
constexpr instant first_redial = 50 * millisecond;
constexpr instant longest_redial = 2 * second;
/// The standard streams of a container outlive whoever was attached, who may have left in the middle of a
/// frame. When such a frame stays unfinished for this long and what there is of it ends in a whole `hello`,
/// that is a new channel.
constexpr instant stall_limit = 300 * millisecond;
/// Above this many bytes of answers that the host does not take, its questions wait.
constexpr std::size_t most_control = 1024 * 1024;
constexpr std::size_t read_at_once = 256 * 1024;

/// As long as a `hello` of this version is.
const std::size_t longest_hello = [] {
    std::string sample;
    protocol::append_hello(sample, {});
    return sample.size();
}();

/// The payload of the `hello` that is the very end of `bytes`; empty when there is none.
std::string_view hello_at_end(std::string_view bytes) {
    if (bytes.size() < longest_hello) {
        return {};
    }
    bytes.remove_prefix(bytes.size() - longest_hello);
    protocol::frame_header header;
    const bool fits = protocol::decode_header(bytes, protocol::sender::host, header) == parse_status::ok &&
                      header.type == frame_type::hello &&
                      header.length == bytes.size() - protocol::header_size;
    bytes.remove_prefix(protocol::header_size);
    return fits && protocol::read_hello(bytes) ? bytes : std::string_view();
}

} // namespace

void agent::accept_connection() {
    descriptor peer(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!peer.valid() && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
        unwatch(listener_.get()); // out of descriptors or memory: it would be reported again and again
        deadlines_.add({now_ + first_redial, deadline_kind::redial, 0});
    }
    if (peer.valid()) {
        admit(std::move(peer));
    }
}

/// Only relays that were started from outside get in, not what a command makes up.
void agent::accept_bridge() {
    descriptor peer(accept4(bridge_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (peer.valid() && comes_from_outside(peer.get())) {
        admit(std::move(peer));
    } else if (!peer.valid() && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
        unwatch(bridge_.get());
        deadlines_.add({now_ + longest_redial, deadline_kind::bridge, 0});
    }
}

void agent::admit(descriptor peer) {
    if (connections_.size() >= most_connections) {
        return;
    }
    const auto id = next_connection_++;
    auto one = std::make_unique<connection>(id, std::move(peer), descriptor());
    one->hello_by = now_ + hello_limit;
    if (!watch(one->in.get(), source::connection, id, EPOLLIN)) {
        return;
    }
    deadlines_.add({one->hello_by, deadline_kind::hello, id});
    connections_[id] = std::move(one);
}

void agent::dial() {
    if (listener_.valid()) {
        watch(listener_.get(), source::listener, 0, EPOLLIN);
        return;
    }
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, options_.dial_path, sizeof address.sun_path - 1);
    descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
        const auto id = next_connection_++;
        auto one = std::make_unique<connection>(id, std::move(socket), descriptor());
        one->dialled = true;
        if (watch(one->in.get(), source::connection, id, EPOLLIN)) {
            connections_[id] = std::move(one);
            redial_pause_ = 0;
            return;
        }
    }
    redial_pause_ = std::min(std::max(redial_pause_ * 2, first_redial), longest_redial);
    deadlines_.add({now_ + redial_pause_, deadline_kind::redial, 0});
}

void agent::drop_connection(std::uint32_t id) {
    const auto found = connections_.find(id);
    if (found == connections_.end()) {
        return;
    }
    auto& one = *found->second;
    if (active_ == &one) {
        active_ = nullptr;
        outbox_.clear();
        for (auto& [number, target] : streams_) {
            target->detach();
        }
    }
    unwatch(one.in.get());
    if (one.out.valid()) {
        unwatch(one.out.get());
    }
    if (one.is_standard()) {
        // There is no other: whatever comes next on it is a new channel.
        one.parser.reset();
        one.welcomed = one.wants_write = one.paused = false;
        if (!one.broken) {
            watch(one.in.get(), source::connection, id, EPOLLIN);
            return;
        }
    }
    const bool dialled = one.dialled;
    connections_.erase(found);
    if (dialled) {
        redial_pause_ = std::max(redial_pause_, first_redial);
        deadlines_.add({now_ + redial_pause_, deadline_kind::redial, 0});
    }
}

void agent::on_connection(std::uint32_t id) {
    const auto found = connections_.find(id);
    if (found != connections_.end() && !found->second->paused) {
        read_frames(*found->second);
    }
}

/// Reads what there is, up to a bound, so that one host that floods leaves time for the rest.
void agent::read_frames(connection& from) {
    const auto id = from.id;
    const bool standard = from.is_standard();
    for (std::size_t total = 0; total < read_at_once;) {
        const auto count = read(from.in.get(), buffers.frames, sizeof buffers.frames);
        if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
            break;
        }
        if (count <= 0) {
            from.broken = true;
            drop_connection(id);
            return;
        }
        total += static_cast<std::size_t>(count);
        if (from.lost) {
            seek_hello(from, {buffers.frames, static_cast<std::size_t>(count)});
            continue;
        }
        from.parser.feed({buffers.frames, static_cast<std::size_t>(count)});
        protocol::frame_view frame;
        parse_status status{};
        while ((status = from.parser.next(frame)) == parse_status::ok) {
            if (!on_frame(from, frame)) {
                status = parse_status::reserved;
                break;
            }
        }
        if (status != parse_status::need_more) {
            drop_connection(id);
            if (standard) {
                from.lost = true;
                seek_hello(from, {buffers.frames, static_cast<std::size_t>(count)});
                continue;
            }
            return;
        }
        if (static_cast<std::size_t>(count) < sizeof buffers.frames) {
            break;
        }
    }
    if (standard && !from.parser.unfinished().empty()) {
        from.stalled_at = now_ + stall_limit;
        deadlines_.add({from.stalled_at, deadline_kind::stalled, id});
    } else {
        from.stalled_at = 0;
    }
}

/// On standard streams that have lost their frames: a new channel begins where what was read ends in a
/// `hello`.
void agent::seek_hello(connection& one, std::string_view bytes) {
    one.tail.append(bytes);
    const auto frame = hello_at_end(one.tail);
    if (!frame.empty()) {
        const std::string copy(frame);
        one.tail.clear();
        one.lost = false;
        one.parser.reset();
        if (!on_hello(one, copy)) {
            one.lost = true;
        }
    } else if (one.tail.size() > longest_hello) {
        one.tail.erase(0, one.tail.size() - longest_hello);
    }
}

void agent::check_stalled(connection& one) {
    const std::string payload(hello_at_end(one.parser.unfinished()));
    if (payload.empty()) {
        return;
    }
    one.parser.reset();
    if (!on_hello(one, payload)) {
        drop_connection(one.id);
    }
}

/// What epoll should tell about the channel, after wants_write or paused has changed.
void agent::update_interest(connection& one) {
    const std::uint32_t reading = one.paused ? 0U : EPOLLIN;
    const std::uint32_t writing = one.wants_write ? EPOLLOUT : 0U;
    if (!one.out.valid()) {
        change_watch(one.in.get(), source::connection, one.id, reading | writing);
        return;
    }
    change_watch(one.in.get(), source::connection, one.id, reading);
    unwatch(one.out.get());
    if (one.wants_write) {
        watch(one.out.get(), source::connection, one.id, writing);
    }
}

/// Writes as much as the channel takes.
void agent::flush() {
    while (active_ != nullptr) {
        const auto bytes = outbox_.front();
        if (bytes.empty()) {
            break;
        }
        const int fd = active_->write_fd();
        const auto count = active_->out.valid() ? write(fd, bytes.data(), bytes.size())
                                                : ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (count >= 0) {
            outbox_.advance(static_cast<std::size_t>(count));
        } else if (errno == EAGAIN) {
            break;
        } else if (errno != EINTR) {
            active_->broken = true;
            drop_connection(active_->id);
        }
    }
    std::erase_if(finished_, [this](std::uint32_t number) {
        const auto* const target = find(number);
        const bool over = target == nullptr || target->end_sent || active_ == nullptr;
        if (over) {
            erase(number);
        }
        return over;
    });
    if (active_ == nullptr) {
        return;
    }
    const bool wants_write = !outbox_.empty();
    const bool paused = outbox_.control_size() > most_control;
    if (active_->wants_write != wants_write || active_->paused != paused) {
        active_->wants_write = wants_write;
        active_->paused = paused;
        update_interest(*active_);
    }
}

} // namespace sandboxd::agent
