#pragma once

#include "docker/error.hpp"

#include <array>
#include <cstdint>
#include <functional>

namespace sandboxd::docker {

enum class channel : std::uint8_t { in = 0, out = 1, err = 2, system_error = 3 };

/// Takes the daemon's multiplexed stream apart: frames of 8 bytes {type,0,0,0,length big-endian} and a
/// payload (engine-facts A6). Frames may be split anywhere and several may come at once; a payload is passed
/// on as it comes, so the length announced is never allocated. No I/O.
class frame_demux {
public:
    using sink = std::function<void(channel, std::string_view)>;

    /// Hands on payload bytes, never empty ones. errc::protocol when the bytes can't be a frame: the stream
    /// is out of step, and the message shows the bytes. All later calls answer the same; what was handed on
    /// before stays good.
    [[nodiscard]] answer<void> feed(std::string_view bytes, const sink& each);

    /// At end-of-file: errc::protocol when a header or a payload was cut (the message tells by how much).
    [[nodiscard]] answer<void> finish() const;

private:
    [[nodiscard]] answer<void> take_header(std::string_view& bytes);

    std::array<unsigned char, 8> header_{};
    std::size_t have_ = 0;   ///< bytes of the header under way
    std::uint32_t left_ = 0; ///< bytes of the payload still to come
    channel to_ = channel::out;
    std::string broken_; ///< why the stream is out of step
};

} // namespace sandboxd::docker
