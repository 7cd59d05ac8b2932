#pragma once

#include "agent/byte_ring.hpp"
#include "protocol/codec.hpp"

namespace sandboxd::agent {

/// One output channel of a stream: what was read from the command and is not yet acknowledged, what is kept
/// and what is dropped, and what of it was sent over the present channel. No I/O.
class output_channel {
public:
    output_channel() : ring_(protocol::window) {}

    /// At most this many bytes are kept; what comes later is counted and dropped.
    void set_keep(std::uint64_t keep) { keep_ = keep; }

    /// Whether the pipe should be read now: there is room, or what is read is dropped anyway.
    [[nodiscard]] bool wants() const { return dropping() || ring_.room() > 0; }
    [[nodiscard]] bool dropping() const { return ring_.end() >= keep_; }

    /// Space to read into (not while dropping()); then commit() what is kept of it.
    [[nodiscard]] int prepare(iovec (&pieces)[2]);
    void commit(std::size_t count) { ring_.commit(count); }
    /// The same in one; the caller has checked room().
    void append(std::string_view bytes) { ring_.append(bytes); }
    [[nodiscard]] std::size_t room() const { return ring_.room(); }
    void drop(std::uint64_t count) { dropped_ += count; }

    /// Drops what is held and all that comes.
    void forget();
    /// Keeps what is held, drops all that comes.
    void close() { keep_ = ring_.end(); }

    [[nodiscard]] bool pending() const { return sent_ < ring_.end(); }
    /// Appends one data frame of at most `most` bytes; the caller has checked pending().
    void take(std::string& out, std::uint32_t stream, protocol::channel which, std::size_t most);

    /// The host has consumed so many bytes. False: it can't have, that is a lie.
    [[nodiscard]] bool credit(std::uint64_t count);
    /// A new channel goes on at this offset. False when it is a lie.
    [[nodiscard]] bool resume(std::uint64_t offset);

    [[nodiscard]] std::uint64_t first_held() const { return ring_.begin(); }
    [[nodiscard]] std::uint64_t total() const { return ring_.end(); }
    [[nodiscard]] std::uint64_t dropped() const { return dropped_; }
    [[nodiscard]] std::size_t held() const { return ring_.size(); }

private:
    byte_ring ring_;
    std::uint64_t keep_ = UINT64_MAX;
    std::uint64_t dropped_ = 0;
    std::uint64_t sent_ = 0;    ///< over the present channel
    std::uint64_t highest_ = 0; ///< ever sent
};

} // namespace sandboxd::agent
