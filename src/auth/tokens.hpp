#pragma once

// Who may do what. Pure and immutable after construction: safe from any thread.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sandboxd::auth {

/// The service's key for session tokens; kept by store/state_directory.hpp.
using token_key = std::array<unsigned char, 32>;

/// Random bytes of one opening of a session; kept in the store, where the token never is.
using token_nonce = std::array<unsigned char, 16>;

/// What a header value proves about one session id (contract 1.1.8 c, N16.4).
enum class scope {
    none,      ///< 401
    service,   ///< everything; 404 when there is no such session
    session,   ///< that session
    tombstone, ///< it was a token of a session of that id which was closed: 404 `No such session: <id>`
};

/// A digest that stands for the token of a closed session: nothing can be done with it.
using token_digest = std::array<unsigned char, 16>;

class token_authority {
public:
    /// An empty service token matches nothing.
    token_authority(std::string service_token, const token_key& key);

    /// True for the service's token. `header` holds the bytes of the header value as they came; they are
    /// read as Latin-1 and compared as UTF-8, in constant time (contract 1.1.3).
    [[nodiscard]] bool is_service(std::string_view header) const;

    /// base64url(HMAC-SHA256(key, id ‖ nonce)), 43 characters (design.md, "Sessions").
    [[nodiscard]] std::string session_token(std::string_view session_id, const token_nonce& nonce) const;

    /// What to remember of the token of a closed session.
    [[nodiscard]] static token_digest digest(std::string_view session_id, std::string_view token);

    /// A header value as contract 1.1.3 compares it: Latin-1 written as UTF-8.
    [[nodiscard]] static std::string as_utf8(std::string_view latin1);

private:
    std::string service_token_;
    token_key key_;
};

[[nodiscard]] token_nonce random_nonce();

} // namespace sandboxd::auth
