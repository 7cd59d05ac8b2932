#include "protocol/handshake.hpp"

#include <algorithm>

namespace sandboxd::protocol {

namespace {

/// No `welcome` is longer: a frame that announces more is not one.
constexpr std::size_t longest_welcome = 256;

std::optional<nonce_bytes> read_nonce(std::string_view payload, tag id) {
    const auto found = find_field(payload, id);
    if (!found || found->value.size() != nonce_size) {
        return std::nullopt;
    }
    nonce_bytes out{};
    std::copy(found->value.begin(), found->value.end(), out.begin());
    return out;
}

std::optional<std::uint32_t> read_u32(std::string_view payload, tag id) {
    const auto found = find_field(payload, id);
    return found ? found->u32() : std::nullopt;
}

} // namespace

void append_hello(std::string& out, const hello& message) {
    frame_writer(out, frame_type::hello, 0)
        .u32(tag::version_min, message.version_min)
        .u32(tag::version_max, message.version_max)
        .bytes(tag::nonce, {message.nonce.data(), message.nonce.size()});
}

std::optional<hello> read_hello(std::string_view payload) {
    const auto low = read_u32(payload, tag::version_min);
    const auto high = read_u32(payload, tag::version_max);
    const auto nonce = read_nonce(payload, tag::nonce);
    if (!low || !high || !nonce) {
        return std::nullopt;
    }
    return hello{*low, *high, *nonce};
}

std::optional<std::uint32_t> common_version(const hello& message) {
    const auto highest = std::min(message.version_max, version);
    const auto lowest = std::max(message.version_min, oldest_version);
    if (highest < lowest) {
        return std::nullopt;
    }
    return highest;
}

void append_welcome(std::string& out, const nonce_bytes& nonce, const welcome& message) {
    frame_writer(out, frame_type::welcome, 0)
        .u32(tag::version, message.version)
        .bytes(tag::nonce, {nonce.data(), nonce.size()})
        .bytes(tag::boot_id, {message.boot_id.data(), message.boot_id.size()});
}

bool welcome_finder::feed(std::string_view bytes, welcome& found) {
    kept_.append(bytes);
    std::string_view rest = kept_;
    while (rest.size() >= header_size) {
        frame_header header;
        const bool candidate = decode_header(rest, sender::agent, header) == parse_status::ok &&
                               header.type == frame_type::welcome && header.length <= longest_welcome;
        if (candidate) {
            if (rest.size() < header_size + header.length) {
                break;
            }
            const auto payload = rest.substr(header_size, header.length);
            const auto spoken = read_u32(payload, tag::version);
            const auto boot_id = read_nonce(payload, tag::boot_id);
            if (spoken && boot_id && read_nonce(payload, tag::nonce) == nonce_) {
                found = {*spoken, *boot_id};
                kept_.erase(0, kept_.size() - rest.size() + header_size + header.length);
                return true;
            }
        }
        rest.remove_prefix(1);
        ++skipped_;
    }
    kept_.erase(0, kept_.size() - rest.size());
    return false;
}

} // namespace sandboxd::protocol
