#include "auth/tokens.hpp"

#include "core/base64.hpp"
#include "core/random.hpp"
#include "core/secret.hpp"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace sandboxd::auth {

namespace {
const unsigned char* as_bytes(std::string_view text) {
    return reinterpret_cast<const unsigned char*>(text.data());
}
} // namespace

token_authority::token_authority(std::string service_token, const token_key& key)
    : service_token_(std::move(service_token)), key_(key) {}

bool token_authority::is_service(std::string_view header) const {
    if (service_token_.empty()) {
        return false;
    }
    return core::equal_secret(as_utf8(header), service_token_);
}

std::string token_authority::session_token(std::string_view session_id, const token_nonce& nonce) const {
    // The nonce has a fixed length, so that no two pairs make the same message.
    std::string message(session_id);
    message.append(reinterpret_cast<const char*>(nonce.data()), nonce.size());
    std::array<unsigned char, SHA256_DIGEST_LENGTH> mac{};
    unsigned int length = 0;
    if (::HMAC(::EVP_sha256(), key_.data(), static_cast<int>(key_.size()), as_bytes(message), message.size(),
               mac.data(), &length) == nullptr ||
        length != mac.size()) {
        std::abort(); // a library without SHA-256: no token can be told from another
    }
    return core::base64_url(mac);
}

token_digest token_authority::digest(std::string_view session_id, std::string_view token) {
    std::string message(session_id);
    message.push_back('\0'); // stands in no id
    message.append(token);
    std::array<unsigned char, SHA256_DIGEST_LENGTH> whole{};
    ::SHA256(as_bytes(message), message.size(), whole.data());
    token_digest short_one{};
    std::copy_n(whole.begin(), short_one.size(), short_one.begin());
    return short_one;
}

std::string token_authority::as_utf8(std::string_view latin1) {
    std::string text;
    text.reserve(latin1.size());
    for (const char c : latin1) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte < 0x80U) {
            text.push_back(c);
        } else {
            text.push_back(static_cast<char>(0xC0U | (byte >> 6U)));
            text.push_back(static_cast<char>(0x80U | (byte & 0x3FU)));
        }
    }
    return text;
}

token_nonce random_nonce() {
    token_nonce nonce{};
    core::random_bytes(nonce);
    return nonce;
}

} // namespace sandboxd::auth
