#pragma once

#include "agent/deadlines.hpp"
#include "agent/descriptor.hpp"
#include "protocol/codec.hpp"

namespace sandboxd::agent {

/// A byte stream to the host: a socket, or the two standard streams.
struct connection {
    connection(std::uint32_t number, descriptor read_end, descriptor write_end)
        : id(number), in(std::move(read_end)), out(std::move(write_end)) {}

    /// Where it has two descriptors it is the standard streams: there is no other, nor an end to it.
    [[nodiscard]] bool is_standard() const { return out.valid(); }
    [[nodiscard]] int write_fd() const { return out.valid() ? out.get() : in.get(); }

    const std::uint32_t id;
    descriptor in;
    descriptor out; ///< not set when `in` goes both ways
    protocol::frame_parser parser{protocol::sender::host};
    bool dialled = false; ///< by us: dialled again when it is lost
    bool welcomed = false;
    bool lost = false; ///< standard streams without frames: a hello is looked for in `tail`
    std::string tail;
    bool wants_write = false; ///< epoll tells when more can be written
    bool paused = false;      ///< not read: the host does not take what it asked for
    bool broken = false;      ///< to be dropped once its events are handled
    instant hello_by = 0;
    instant stalled_at = 0; ///< when an unfinished frame is looked at for a new hello in it
};

} // namespace sandboxd::agent
