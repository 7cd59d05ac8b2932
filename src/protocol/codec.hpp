#pragma once

// Frames to bytes and back: no I/O, no clock, no exceptions. Used by both sides, each on a thread of its own
// choosing.

#include "protocol/frame.hpp"

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace sandboxd::protocol {

/// Appends `value` in little endian, in the width of its type.
void append_u16(std::string& out, std::uint16_t value);
void append_u32(std::string& out, std::uint32_t value);
void append_u64(std::string& out, std::uint64_t value);

/// The integer at the front of `bytes`; nothing unless `bytes` is exactly that long.
[[nodiscard]] std::optional<std::uint8_t> exact_u8(std::string_view bytes);
[[nodiscard]] std::optional<std::uint16_t> exact_u16(std::string_view bytes);
[[nodiscard]] std::optional<std::uint32_t> exact_u32(std::string_view bytes);
[[nodiscard]] std::optional<std::uint64_t> exact_u64(std::string_view bytes);

/// The 12 bytes of a header.
[[nodiscard]] std::array<char, header_size> encode_header(const frame_header& header);

enum class parse_status : std::uint8_t {
    ok,
    need_more,    ///< the bytes end inside a frame (or there are none)
    too_long,     ///< the announced payload is above the limit of its type
    unknown_type, ///< no such type, or not one that this sender may send
    reserved,     ///< a reserved byte is not zero, or a channel number does not exist
    bad_stream,   ///< stream 0 in a frame about a stream, or a stream in a frame about the channel
};

/// Reads a header from the first 12 bytes of `bytes` (need_more when shorter) and checks all that can be
/// checked in it.
[[nodiscard]] parse_status decode_header(std::string_view bytes, sender from, frame_header& header);

struct frame_view {
    frame_header header;
    std::string_view payload; ///< valid until the parser's next call
};

/// Cuts a byte stream into frames. Hand it what was read with feed(), then call next() until it says
/// need_more. A frame that lies whole in the bytes fed is not copied; the rest of a frame is collected in a
/// buffer that grows with what has really arrived, whatever length was announced. After an error every next()
/// repeats it: close the channel.
class frame_parser {
public:
    explicit frame_parser(sender from) : from_(from) {}

    /// `bytes` must stay valid and unchanged until next() has said need_more.
    void feed(std::string_view bytes) { input_ = bytes; }

    /// The next frame; its payload is valid until the next call of anything.
    [[nodiscard]] parse_status next(frame_view& frame);

    /// Bytes of an unfinished frame, header included.
    [[nodiscard]] std::string_view unfinished() const { return partial_; }

    /// Forgets everything, for a new channel.
    void reset();

private:
    [[nodiscard]] parse_status complete(frame_view& frame);
    [[nodiscard]] parse_status fail(parse_status status);

    sender from_;
    bool emit_ = false; ///< partial_ holds a frame that was handed out
    parse_status error_ = parse_status::ok;
    std::string_view input_;
    std::string partial_;
};

/// Whole frames with fixed payloads.
void append_data(std::string& out, std::uint32_t stream, channel which, std::string_view bytes);
void append_credit(std::string& out, std::uint32_t stream, channel which, std::uint64_t count);
void append_end_of_data(std::string& out, std::uint32_t stream, channel which);
void append_signal(std::string& out, std::uint32_t stream, std::uint32_t number);
void append_resize(std::string& out, std::uint32_t stream, std::uint16_t rows, std::uint16_t columns);
/// ready, shutdown, forget and stop; also a ping without a payload.
void append_empty(std::string& out, frame_type type, std::uint32_t stream);
/// ping and pong; `payload` at most 8 bytes.
void append_ping(std::string& out, frame_type type, std::string_view payload);

} // namespace sandboxd::protocol
