#pragma once

// How a channel opens: `hello` with a fresh nonce, then everything is thrown away up to the `welcome` that
// repeats it.

#include "protocol/fields.hpp"

namespace sandboxd::protocol {

using nonce_bytes = std::array<char, nonce_size>;

struct hello {
    std::uint32_t version_min = oldest_version;
    std::uint32_t version_max = version;
    nonce_bytes nonce{};
};

struct welcome {
    std::uint32_t version = 0;
    nonce_bytes boot_id{};
};

void append_hello(std::string& out, const hello& message);
/// The payload of a `hello` frame; nothing when a field is missing or has the wrong width.
[[nodiscard]] std::optional<hello> read_hello(std::string_view payload);

/// The highest version that both sides speak, or nothing.
[[nodiscard]] std::optional<std::uint32_t> common_version(const hello& message);

void append_welcome(std::string& out, const nonce_bytes& nonce, const welcome& message);

/// Finds the `welcome` that carries a nonce in a byte stream that may begin with the rest of an earlier
/// channel.
class welcome_finder {
public:
    explicit welcome_finder(const nonce_bytes& nonce) : nonce_(nonce) {}

    /// Looks at the bytes read next. Once found, `rest()` is what followed it: feed that to a frame_parser.
    [[nodiscard]] bool feed(std::string_view bytes, welcome& found);

    [[nodiscard]] std::string_view rest() const { return kept_; }
    /// Bytes thrown away so far; the caller gives up above a bound of its own.
    [[nodiscard]] std::uint64_t skipped() const { return skipped_; }

private:
    nonce_bytes nonce_;
    std::string kept_;
    std::uint64_t skipped_ = 0;
};

} // namespace sandboxd::protocol
