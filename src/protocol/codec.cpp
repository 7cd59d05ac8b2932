#include "protocol/codec.hpp"

#include <algorithm>

namespace sandboxd::protocol {

namespace {

template <class T>
void append_integer(std::string& out, T value) {
    for (std::size_t i = 0; i < sizeof(T); ++i) {
        out.push_back(static_cast<char>(static_cast<unsigned char>(value >> (8 * i))));
    }
}

template <class T>
T load(const char* from) {
    T value = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) {
        value = static_cast<T>(
            value | static_cast<T>(static_cast<T>(static_cast<unsigned char>(from[i])) << (8 * i)));
    }
    return value;
}

template <class T>
std::optional<T> exact(std::string_view bytes) {
    if (bytes.size() != sizeof(T)) {
        return std::nullopt;
    }
    return load<T>(bytes.data());
}

/// What is known of a type: who may send it, whether it is about a stream, whether its flags are a channel.
struct type_rule {
    bool host = false;
    bool agent = false;
    bool stream = false;
    bool channel = false;
    std::uint32_t limit = max_payload;
};

type_rule rule_of(std::uint8_t type) {
    switch (static_cast<frame_type>(type)) {
    case frame_type::hello:
        return {.host = true};
    case frame_type::welcome:
        return {.agent = true};
    case frame_type::ready:
        return {.agent = true, .limit = 0};
    case frame_type::ping:
    case frame_type::pong:
        return {.host = true, .agent = true, .limit = 8};
    case frame_type::shutdown:
        return {.host = true, .limit = 0};
    case frame_type::start:
        return {.host = true, .stream = true, .limit = max_start};
    case frame_type::started:
        return {.agent = true, .stream = true};
    case frame_type::data:
        return {.host = true, .agent = true, .stream = true, .channel = true};
    case frame_type::credit:
        return {.host = true, .agent = true, .stream = true, .channel = true, .limit = 8};
    case frame_type::end_of_data:
        return {.host = true, .agent = true, .stream = true, .channel = true, .limit = 0};
    case frame_type::end:
        return {.agent = true, .stream = true};
    case frame_type::forget:
    case frame_type::stop:
        return {.host = true, .stream = true, .limit = 0};
    case frame_type::signal:
    case frame_type::resize:
        return {.host = true, .stream = true, .limit = 4};
    case frame_type::stream_state:
        return {.agent = true, .stream = true};
    case frame_type::resume:
        return {.host = true, .stream = true};
    }
    return {};
}

void append_header(std::string& out, std::size_t length, frame_type type, std::uint8_t flags,
                   std::uint32_t stream) {
    const auto bytes = encode_header({static_cast<std::uint32_t>(length), type, flags, stream});
    out.append(bytes.data(), bytes.size());
}

} // namespace

void append_u16(std::string& out, std::uint16_t value) {
    append_integer(out, value);
}
void append_u32(std::string& out, std::uint32_t value) {
    append_integer(out, value);
}
void append_u64(std::string& out, std::uint64_t value) {
    append_integer(out, value);
}

std::optional<std::uint8_t> exact_u8(std::string_view bytes) {
    return exact<std::uint8_t>(bytes);
}
std::optional<std::uint16_t> exact_u16(std::string_view bytes) {
    return exact<std::uint16_t>(bytes);
}
std::optional<std::uint32_t> exact_u32(std::string_view bytes) {
    return exact<std::uint32_t>(bytes);
}
std::optional<std::uint64_t> exact_u64(std::string_view bytes) {
    return exact<std::uint64_t>(bytes);
}

std::array<char, header_size> encode_header(const frame_header& header) {
    std::array<char, header_size> out{};
    for (std::size_t i = 0; i < 4; ++i) {
        out[i] = static_cast<char>(static_cast<unsigned char>(header.length >> (8 * i)));
        out[8 + i] = static_cast<char>(static_cast<unsigned char>(header.stream >> (8 * i)));
    }
    out[4] = static_cast<char>(header.type);
    out[5] = static_cast<char>(header.flags);
    return out;
}

parse_status decode_header(std::string_view bytes, sender from, frame_header& header) {
    if (bytes.size() < header_size) {
        return parse_status::need_more;
    }
    const auto type = static_cast<std::uint8_t>(bytes[4]);
    header.length = load<std::uint32_t>(bytes.data());
    header.type = static_cast<frame_type>(type);
    header.flags = static_cast<std::uint8_t>(bytes[5]);
    header.stream = load<std::uint32_t>(bytes.data() + 8);
    const auto rule = rule_of(type);
    if (!(from == sender::host ? rule.host : rule.agent)) {
        return parse_status::unknown_type;
    }
    if (load<std::uint16_t>(bytes.data() + 6) != 0) {
        return parse_status::reserved;
    }
    const auto highest = rule.channel ? static_cast<std::uint8_t>(channel::err) : std::uint8_t{0};
    if (header.flags > highest) {
        return parse_status::reserved;
    }
    if (header.length > rule.limit) {
        return parse_status::too_long;
    }
    if (rule.stream != (header.stream != 0)) {
        return parse_status::bad_stream;
    }
    return parse_status::ok;
}

void frame_parser::reset() {
    input_ = {};
    partial_.clear();
    partial_.shrink_to_fit();
    emit_ = false;
    error_ = parse_status::ok;
}

parse_status frame_parser::fail(parse_status status) {
    error_ = status;
    input_ = {};
    return status;
}

parse_status frame_parser::next(frame_view& frame) {
    if (error_ != parse_status::ok) {
        return error_;
    }
    if (emit_) {
        emit_ = false;
        partial_.clear();
        if (partial_.capacity() > max_payload + header_size) {
            partial_.shrink_to_fit();
        }
    }
    if (!partial_.empty()) {
        return complete(frame);
    }
    const auto status = decode_header(input_, from_, frame.header);
    if (status == parse_status::ok && input_.size() - header_size >= frame.header.length) {
        frame.payload = input_.substr(header_size, frame.header.length);
        input_.remove_prefix(header_size + frame.header.length);
        return status;
    }
    if (status != parse_status::ok && status != parse_status::need_more) {
        return fail(status);
    }
    partial_.assign(input_);
    input_ = {};
    return parse_status::need_more;
}

/// Goes on with a frame whose beginning came earlier: first up to the header's end, then up to the payload's.
parse_status frame_parser::complete(frame_view& frame) {
    if (partial_.size() < header_size) {
        const auto take = std::min(header_size - partial_.size(), input_.size());
        partial_.append(input_.substr(0, take));
        input_.remove_prefix(take);
    }
    const auto status = decode_header(partial_, from_, frame.header);
    if (status == parse_status::need_more) {
        return status;
    }
    if (status != parse_status::ok) {
        return fail(status);
    }
    const auto whole = header_size + frame.header.length;
    const auto take = std::min(whole - partial_.size(), input_.size());
    partial_.append(input_.substr(0, take));
    input_.remove_prefix(take);
    if (partial_.size() < whole) {
        return parse_status::need_more;
    }
    emit_ = true;
    frame.payload = std::string_view(partial_).substr(header_size);
    return parse_status::ok;
}

void append_data(std::string& out, std::uint32_t stream, channel which, std::string_view bytes) {
    append_header(out, bytes.size(), frame_type::data, static_cast<std::uint8_t>(which), stream);
    out.append(bytes);
}

void append_credit(std::string& out, std::uint32_t stream, channel which, std::uint64_t count) {
    append_header(out, 8, frame_type::credit, static_cast<std::uint8_t>(which), stream);
    append_u64(out, count);
}

void append_end_of_data(std::string& out, std::uint32_t stream, channel which) {
    append_header(out, 0, frame_type::end_of_data, static_cast<std::uint8_t>(which), stream);
}

void append_signal(std::string& out, std::uint32_t stream, std::uint32_t number) {
    append_header(out, 4, frame_type::signal, 0, stream);
    append_u32(out, number);
}

void append_resize(std::string& out, std::uint32_t stream, std::uint16_t rows, std::uint16_t columns) {
    append_header(out, 4, frame_type::resize, 0, stream);
    append_u16(out, rows);
    append_u16(out, columns);
}

void append_empty(std::string& out, frame_type type, std::uint32_t stream) {
    append_header(out, 0, type, 0, stream);
}

void append_ping(std::string& out, frame_type type, std::string_view payload) {
    append_header(out, payload.size(), type, 0, 0);
    out.append(payload);
}

} // namespace sandboxd::protocol
