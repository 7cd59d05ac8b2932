#pragma once

// Lists of fields: the payload of every frame that is not a fixed one (frame.hpp).

#include "protocol/codec.hpp"

namespace sandboxd::protocol {

/// Writes one frame with fields at the end of a buffer: the header at once, the length at finish() or when it
/// is destroyed. Nothing else may be appended to the buffer meanwhile; after finish() it may be moved away.
class frame_writer {
public:
    frame_writer(std::string& out, frame_type type, std::uint32_t stream);
    ~frame_writer() { finish(); }
    frame_writer(const frame_writer&) = delete;
    frame_writer& operator=(const frame_writer&) = delete;

    frame_writer& u8(tag id, std::uint8_t value);
    frame_writer& u16(tag id, std::uint16_t value);
    frame_writer& u32(tag id, std::uint32_t value);
    frame_writer& u64(tag id, std::uint64_t value);
    frame_writer& bytes(tag id, std::string_view value);
    frame_writer& empty(tag id) { return bytes(id, {}); }

    /// Size of the payload so far: the caller keeps it within max_payload or max_start.
    [[nodiscard]] std::size_t size() const { return out_.size() - start_ - header_size; }

    /// Puts the length into the header; the last call.
    void finish();

private:
    void head(tag id, std::size_t length);

    std::string& out_;
    std::size_t start_;
    bool finished_ = false;
};

struct field {
    tag id{};
    std::string_view value;

    /// The value as an integer; nothing when its width is another.
    [[nodiscard]] std::optional<std::uint8_t> u8() const { return exact_u8(value); }
    [[nodiscard]] std::optional<std::uint16_t> u16() const { return exact_u16(value); }
    [[nodiscard]] std::optional<std::uint32_t> u32() const { return exact_u32(value); }
    [[nodiscard]] std::optional<std::uint64_t> u64() const { return exact_u64(value); }
};

/// Walks the fields of a payload. Values are views into it.
class field_reader {
public:
    explicit field_reader(std::string_view payload) : rest_(payload) {}

    /// The next field; false at the end, and for good at the first that runs over the end (then malformed()
    /// is true).
    [[nodiscard]] bool next(field& out);

    [[nodiscard]] bool malformed() const { return malformed_; }

private:
    std::string_view rest_;
    bool malformed_ = false;
};

/// The first field `id` of a payload; nothing when it is absent or the list is cut before it.
[[nodiscard]] std::optional<field> find_field(std::string_view payload, tag id);

} // namespace sandboxd::protocol
