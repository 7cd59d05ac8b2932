#include "auth/tokens.hpp"

#include <boost/test/unit_test.hpp>

#include <set>

using namespace sandboxd;

namespace {
auth::token_key key_of(unsigned char first) {
    auth::token_key key{};
    for (std::size_t i = 0; i < key.size(); ++i) {
        key[i] = static_cast<unsigned char>(first + i);
    }
    return key;
}

auth::token_nonce nonce_of(unsigned char fill) {
    auth::token_nonce nonce{};
    nonce.fill(fill);
    return nonce;
}
} // namespace

BOOST_AUTO_TEST_CASE(the_service_token_matches_itself_only) {
    const auth::token_authority authority("secret-token", key_of(0));
    BOOST_TEST(authority.is_service("secret-token"));
    BOOST_TEST(!authority.is_service("secret-toke"));
    BOOST_TEST(!authority.is_service("secret-token2"));
    BOOST_TEST(!authority.is_service("Secret-token"));
    BOOST_TEST(!authority.is_service(""));
    BOOST_TEST(!authority.is_service("\xE9"));
    BOOST_TEST(!authority.is_service(std::string("secret-token\0", 13)));
}

BOOST_AUTO_TEST_CASE(an_empty_service_token_matches_nothing) {
    const auth::token_authority authority("", key_of(0));
    BOOST_TEST(!authority.is_service(""));
    BOOST_TEST(!authority.is_service("x"));
}

// Contract 1.1.3: the header is Latin-1, the configured token UTF-8.
BOOST_AUTO_TEST_CASE(a_token_outside_ascii_matches_in_latin_1_only) {
    const auth::token_authority authority("caf\xC3\xA9", key_of(0));
    BOOST_TEST(authority.is_service("caf\xE9"));
    BOOST_TEST(!authority.is_service("caf\xC3\xA9"));
    BOOST_TEST(auth::token_authority::as_utf8("\x41\x7F\x80\xFF") == "\x41\x7F\xC2\x80\xC3\xBF");
}

// Computed with another program: HMAC-SHA256 of the id and the nonce, URL-safe base64 without padding.
BOOST_AUTO_TEST_CASE(a_session_token_is_the_keyed_hash_of_id_and_nonce) {
    const auth::token_authority authority("t", key_of(0));
    BOOST_TEST(authority.session_token("user-123.v2", nonce_of(0xAB)) ==
               "PIGopEBgF1zcjFwHb-PpEf-6dcllWFKHGPM-_bns6HA");
    std::set<std::string> different;
    for (const char* id : {"a", "b", "aa", "user-123.v2"}) {
        for (const unsigned char fill : std::initializer_list<unsigned char>{0, 1, 255}) {
            const auto token = authority.session_token(id, nonce_of(fill));
            BOOST_TEST(token.size() == 43U);
            BOOST_TEST(token.find_first_of("+/=") == std::string::npos);
            different.insert(token);
            different.insert(auth::token_authority("t", key_of(1)).session_token(id, nonce_of(fill)));
        }
    }
    BOOST_TEST(different.size() == 24U);
}

BOOST_AUTO_TEST_CASE(a_digest_binds_the_token_to_its_id) {
    const auto one = auth::token_authority::digest("a", "bc");
    BOOST_TEST((one == auth::token_authority::digest("a", "bc")));
    BOOST_TEST((one != auth::token_authority::digest("ab", "c")));
    BOOST_TEST((one != auth::token_authority::digest("a", "bd")));
}

BOOST_AUTO_TEST_CASE(nonces_are_not_repeated) {
    std::set<auth::token_nonce> seen;
    for (int i = 0; i < 1000; ++i) {
        seen.insert(auth::random_nonce());
    }
    BOOST_TEST(seen.size() == 1000U);
}
