#pragma once

#include "agent/byte_ring.hpp"
#include "protocol/frame.hpp"

namespace sandboxd::agent {

/// stdin of a stream: what the host sent and the command has not read yet. No I/O.
class input_channel {
public:
    input_channel() : ring_(protocol::window) {}

    /// False when the host went beyond its window, or past its own end_of_data: a lie.
    [[nodiscard]] bool accept(std::string_view bytes) {
        if (ended_ || bytes.size() > ring_.room()) {
            return false;
        }
        if (closed_) {
            consumed_ += bytes.size();
            arrived_ += bytes.size();
            return true;
        }
        ring_.append(bytes);
        arrived_ += bytes.size();
        return true;
    }
    void end() { ended_ = true; }

    /// Nobody reads any more: everything is consumed at once.
    void close() {
        closed_ = true;
        consumed_ = arrived_;
        ring_.release(ring_.end());
    }

    [[nodiscard]] int view(iovec (&pieces)[2]) const { return ring_.view(ring_.begin(), SIZE_MAX, pieces); }
    void consume(std::size_t count) {
        ring_.release(ring_.begin() + count);
        consumed_ += count;
    }

    [[nodiscard]] bool empty() const { return ring_.size() == 0; }
    [[nodiscard]] bool ended() const { return ended_; }
    [[nodiscard]] bool closed() const { return closed_; }
    [[nodiscard]] std::uint64_t arrived() const { return arrived_; }

    /// The count to acknowledge now, if it is worth a frame: a quarter of the window, or all there is.
    [[nodiscard]] bool credit_due(std::uint64_t& count) {
        const auto fresh = consumed_ - credited_;
        if (fresh == 0 || (fresh < protocol::window / 4 && !empty())) {
            return false;
        }
        count = credited_ = consumed_;
        return true;
    }
    /// A new channel: the next credit_due() tells the count again.
    void forget_credit() { credited_ = 0; }

private:
    byte_ring ring_;
    std::uint64_t arrived_ = 0;
    std::uint64_t consumed_ = 0;
    std::uint64_t credited_ = 0;
    bool ended_ = false;
    bool closed_ = false;
};

} // namespace sandboxd::agent
