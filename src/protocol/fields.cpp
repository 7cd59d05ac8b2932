#include "protocol/fields.hpp"

namespace sandboxd::protocol {

namespace {

constexpr std::size_t field_head = 6;

} // namespace

frame_writer::frame_writer(std::string& out, frame_type type, std::uint32_t stream)
    : out_(out), start_(out.size()) {
    const auto header = encode_header({0, type, 0, stream});
    out_.append(header.data(), header.size());
}

void frame_writer::finish() {
    if (finished_) {
        return;
    }
    finished_ = true;
    const auto length = static_cast<std::uint32_t>(size());
    for (std::size_t i = 0; i < 4; ++i) {
        out_[start_ + i] = static_cast<char>(static_cast<unsigned char>(length >> (8 * i)));
    }
}

void frame_writer::head(tag id, std::size_t length) {
    append_u16(out_, static_cast<std::uint16_t>(id));
    append_u32(out_, static_cast<std::uint32_t>(length));
}

frame_writer& frame_writer::u8(tag id, std::uint8_t value) {
    head(id, 1);
    out_.push_back(static_cast<char>(value));
    return *this;
}

frame_writer& frame_writer::u16(tag id, std::uint16_t value) {
    head(id, 2);
    append_u16(out_, value);
    return *this;
}

frame_writer& frame_writer::u32(tag id, std::uint32_t value) {
    head(id, 4);
    append_u32(out_, value);
    return *this;
}

frame_writer& frame_writer::u64(tag id, std::uint64_t value) {
    head(id, 8);
    append_u64(out_, value);
    return *this;
}

frame_writer& frame_writer::bytes(tag id, std::string_view value) {
    head(id, value.size());
    out_.append(value);
    return *this;
}

bool field_reader::next(field& out) {
    if (malformed_ || rest_.empty()) {
        return false;
    }
    if (rest_.size() < field_head) {
        malformed_ = true;
        return false;
    }
    const auto id = *exact_u16(rest_.substr(0, 2));
    const auto length = *exact_u32(rest_.substr(2, 4));
    if (rest_.size() - field_head < length) {
        malformed_ = true;
        return false;
    }
    out.id = static_cast<tag>(id);
    out.value = rest_.substr(field_head, length);
    rest_.remove_prefix(field_head + length);
    return true;
}

std::optional<field> find_field(std::string_view payload, tag id) {
    field_reader reader(payload);
    field found;
    while (reader.next(found)) {
        if (found.id == id) {
            return found;
        }
    }
    return std::nullopt;
}

} // namespace sandboxd::protocol
