// base64, hex, random ids, secrets, UTF-8, errors, log.

#include "core/base64.hpp"
#include "core/log.hpp"
#include "core/random.hpp"
#include "core/secret.hpp"
#include "core/utf8.hpp"
#include "sandboxd/error.hpp"

#include <boost/test/unit_test.hpp>

#include <array>
#include <cerrno>
#include <cstdio>
#include <stdexcept>
#include <unistd.h>

using namespace sandboxd;

BOOST_AUTO_TEST_CASE(base64_of_every_remainder) {
    // RFC 4648 section 10.
    const std::pair<std::string, std::string> vectors[] = {{"", ""},
                                                           {"f", "Zg=="},
                                                           {"fo", "Zm8="},
                                                           {"foo", "Zm9v"},
                                                           {"foob", "Zm9vYg=="},
                                                           {"fooba", "Zm9vYmE="},
                                                           {"foobar", "Zm9vYmFy"},
                                                           {"\xFF\xFE\xFD", "//79"}};
    for (const auto& [bytes, text] : vectors) {
        BOOST_TEST(core::base64(bytes) == text);
        BOOST_TEST((core::from_base64(text) == std::optional(bytes)));
    }
}

BOOST_AUTO_TEST_CASE(base64_takes_nothing_but_base64) {
    for (const char* text : {"Z", "Zg", "Zg=", "Zg===", "Zh==", "Zm9=", "Zm9v\n", "Zm 9v", "Zm9-", "Z_9v",
                             "=", "====", "Zg==Zg==", "Z===", "ab=c"}) {
        BOOST_TEST(!core::from_base64(text), text);
    }
    BOOST_TEST(!core::from_base64(std::string("Zm\0v", 4)));
}

BOOST_AUTO_TEST_CASE(base64_looks_at_every_digit) {
    const std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (std::size_t place = 0; place < 12; ++place) {
        for (int byte = 0; byte < 256; ++byte) {
            std::string text = "TWFuTWFuTWFu";
            text[place] = static_cast<char>(byte);
            const auto bytes = core::from_base64(text);
            const bool digit = digits.find(text[place]) != std::string_view::npos;
            // With '=' at the very end there would be bits that no byte gets.
            BOOST_TEST(bytes.has_value() == digit, "byte " << byte << " at " << place);
            BOOST_TEST((!bytes || core::base64(*bytes) == text));
        }
    }
}

BOOST_AUTO_TEST_CASE(base64_of_every_length_comes_back) {
    std::string bytes;
    for (std::size_t size = 0; size < 600; ++size) {
        const auto text = core::base64(bytes);
        BOOST_TEST(text.size() == (size + 2) / 3 * 4);
        BOOST_TEST((core::from_base64(text) == std::optional(bytes)), "size " << size);
        bytes.push_back(static_cast<char>(size * 37 + size / 256));
    }
}

BOOST_AUTO_TEST_CASE(base64_url_is_43_characters_for_32_bytes) {
    std::array<unsigned char, 32> bytes{};
    bytes.fill(0xFB);
    const auto text = core::base64_url(bytes);
    BOOST_TEST(text.size() == 43U);
    BOOST_TEST(text.substr(0, 8) == "-_v7-_v7");
}

BOOST_AUTO_TEST_CASE(hex_goes_both_ways) {
    std::array<unsigned char, 3> bytes{};
    BOOST_TEST(core::from_hex("00fFa9", bytes));
    BOOST_TEST(core::to_hex(bytes) == "00ffa9");
    for (const char* text : {"", "00ffa", "00ffa9a", "00ffag", "0x00ff", "00 ffa"}) {
        BOOST_TEST(!core::from_hex(text, bytes), text);
    }
}

BOOST_AUTO_TEST_CASE(random_ids_have_their_form_and_differ) {
    BOOST_TEST(core::random_hex(16).size() == 32U);
    BOOST_TEST(core::random_hex(16) != core::random_hex(16));
    const auto id = core::random_uuid();
    BOOST_REQUIRE_EQUAL(id.size(), 36U);
    for (const std::size_t at : {8U, 13U, 18U, 23U}) {
        BOOST_TEST(id[at] == '-');
    }
    BOOST_TEST(id[14] == '4');
    BOOST_TEST(std::string("89ab").find(id[19]) != std::string::npos);
    BOOST_TEST(id.find_first_not_of("0123456789abcdef-") == std::string::npos);
    BOOST_TEST(core::random_uuid() != id);
}

BOOST_AUTO_TEST_CASE(secrets_are_equal_only_when_every_byte_is) {
    BOOST_TEST(core::equal_secret("secret", "secret"));
    BOOST_TEST(core::equal_secret("", ""));
    BOOST_TEST(!core::equal_secret("secret", "secreT"));
    BOOST_TEST(!core::equal_secret("Secret", "secret"));
    BOOST_TEST(!core::equal_secret("secre", "secret"));
    BOOST_TEST(!core::equal_secret(std::string("secret\0", 7), "secret"));
    BOOST_TEST(!core::equal_secret("", "secret"));
    BOOST_TEST(!core::equal_secret("secret", ""));
}

BOOST_AUTO_TEST_CASE(utf8_is_told_from_what_only_looks_like_it) {
    for (const char* text :
         {"", "a", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80", "\xEF\xBF\xBF", "\xF4\x8F\xBF\xBF"}) {
        BOOST_TEST(core::is_utf8(text), text);
        BOOST_TEST(core::to_utf8(text) == text);
    }
    BOOST_TEST(core::is_utf8(std::string("a\0b", 3)));
    // What Python's bytes.decode(errors="replace") gives.
    const std::string r = "\xEF\xBF\xBD";
    const std::pair<std::string, std::string> broken[] = {
        {"\x80", r},                 // a continuation alone
        {"\xC0\xAF", r + r},         // overlong
        {"\xC3", r},                 // cut
        {"\xC3(", r + "("},          //
        {"\xE0\x80\xAF", r + r + r}, // overlong
        {"\xE2\x82", r},             // cut
        {"\xE2\x82z", r + "z"},      //
        {"\xED\xA0\x80", r + r + r}, // a surrogate
        {"\xF0\x9F\x98", r},         // cut
        {"\xF0\x80\x80\x80", r + r + r + r},
        {"\xF4\x90\x80\x80", r + r + r + r}, // beyond U+10FFFF
        {"\xF5", r},
        {"a\xFFz", "a" + r + "z"},
    };
    for (const auto& [bytes, text] : broken) {
        BOOST_TEST(!core::is_utf8(bytes));
        BOOST_TEST(core::to_utf8(bytes) == text);
    }
}

BOOST_AUTO_TEST_CASE(valid_utf8_is_not_copied) {
    std::string text(1000, 'x');
    text += "\xC3\xA9";
    const char* const before = text.data();
    const std::string after = core::to_utf8(std::move(text));
    BOOST_TEST(static_cast<const void*>(after.data()) == static_cast<const void*>(before));
}

BOOST_AUTO_TEST_CASE(errors_have_names_and_say_what_the_system_said) {
    BOOST_TEST(name_of(errc::invalid) == std::string("invalid"));
    BOOST_TEST(name_of(errc::internal) == std::string("internal"));
    const auto made = os_error("cannot open x", ENOENT);
    BOOST_TEST((made.code == errc::io));
    BOOST_TEST(made.message == "cannot open x: No such file or directory");
    const result<int> failed = error{errc::busy, "later"};
    BOOST_CHECK_EXCEPTION((void)failed.value(), std::runtime_error, [](const std::runtime_error& e) {
        return std::string(e.what()).starts_with("busy: later");
    });
}

namespace {
/// What is written to standard error meanwhile.
template <class F>
std::string errors_of(F action) {
    std::FILE* file = std::tmpfile();
    BOOST_REQUIRE(file != nullptr);
    std::fflush(stderr);
    const int kept = ::dup(2);
    ::dup2(::fileno(file), 2);
    action();
    std::fflush(stderr);
    ::dup2(kept, 2);
    ::close(kept);
    std::string text;
    std::rewind(file);
    for (int c = std::fgetc(file); c != EOF; c = std::fgetc(file)) {
        text.push_back(static_cast<char>(c));
    }
    std::fclose(file);
    return text;
}
} // namespace

BOOST_AUTO_TEST_CASE(the_log_is_one_line_each_whatever_the_message) {
    BOOST_TEST(core::log::set_level("info"));
    const auto text = errors_of([] {
        core::log::info("a {}\nb\x1b[31m", "x");
        core::log::debug("not shown");
    });
    BOOST_TEST(text.ends_with(" info a x?b?[31m\n"));
    BOOST_TEST(std::count(text.begin(), text.end(), '\n') == 1);
    BOOST_TEST(core::log::set_format("json"));
    const auto json = errors_of([] { core::log::warning("a \"{}\"\\\n\x7F", 7); });
    BOOST_TEST(core::log::set_format("text"));
    BOOST_TEST(json.starts_with("{\"time\":\""));
    BOOST_TEST(json.ends_with("\"level\":\"warning\",\"message\":\"a \\\"7\\\"\\\\\\u000a\\u007f\"}\n"));
    BOOST_TEST(!core::log::set_level("loud"));
    BOOST_TEST(!core::log::set_format("xml"));
    BOOST_TEST(core::log::enabled(core::log::level::info));
    BOOST_TEST(!core::log::enabled(core::log::level::debug));
}
