#include "text/decode.hpp"
#include "text/charset.hpp"
#include "text/extract.hpp"

#include <boost/test/unit_test.hpp>

#include <random>

// Contract 3.3.3, 11.6: from bytes to UTF-8.

namespace sandboxd::text {

namespace {

using namespace std::string_literals;

std::string repeated(const std::string& text, int times) {
    std::string out;
    for (int i = 0; i < times; ++i) {
        out += text;
    }
    return out;
}

/// One kind of file, one encoding of it that needs no guess of ours to check against: bytes and their text.
struct sample {
    std::string bytes;
    std::string text;
};

// "Привет, как дела? Всё хорошо. " in Windows-1251 and KOI8-R; "Où est le garçon? Il a été à l'école. " in
// Latin-1.
const sample cyrillic{
    "\xCF\xF0\xE8\xE2\xE5\xF2, \xEA\xE0\xEA \xE4\xE5\xEB\xE0? \xC2\xF1\xB8 \xF5\xEE\xF0\xEE\xF8\xEE. ",
    "Привет, как дела? Всё хорошо. "};
const sample koi{
    "\xF0\xD2\xC9\xD7\xC5\xD4, \xCB\xC1\xCB \xC4\xC5\xCC\xC1? \xF7\xD3\xA3 \xC8\xCF\xD2\xCF\xDB\xCF. ",
    "Привет, как дела? Всё хорошо. "};
const sample french{"O\xF9 est le gar\xE7on? Il a \xE9t\xE9 \xE0 l'\xE9"
                    "cole. ",
                    "Où est le garçon? Il a été à l'école. "};
// "你好，世界。这是一个测试文件。" in GBK, "こんにちは世界。これはテストです。" in Shift-JIS and EUC-JP
const sample chinese{
    "\xC4\xE3\xBA\xC3\xA3\xAC\xCA\xC0\xBD\xE7\xA1\xA3\xD5\xE2\xCA\xC7\xD2\xBB\xB8\xF6\xB2\xE2\xCA\xD4"
    "\xCE\xC4\xBC\xFE\xA1\xA3",
    "你好，世界。这是一个测试文件。"};
const sample japanese{
    "\x82\xB1\x82\xF1\x82\xC9\x82\xBF\x82\xCD\x90\xA2\x8A\x45\x81\x42\x82\xB1\x82\xEA\x82\xCD\x83\x65"
    "\x83\x58\x83\x67\x82\xC5\x82\xB7\x81\x42",
    "こんにちは世界。これはテストです。"};

} // namespace

BOOST_AUTO_TEST_SUITE(decoding)

BOOST_AUTO_TEST_CASE(utf8_is_never_guessed_at) {
    // Short texts that detectors take for something else (contract 9.1.18).
    for (const char* text : {"print('é')\n", "10€", "a – b", "ü", "", "plain", "a\0b"}) {
        BOOST_TEST(decode_text(text) == text);
        BOOST_TEST(decode_unknown(text).value() == text);
    }
    BOOST_TEST(decode_unknown("a\0b\0\n"s).value() == "a\0b\0\n"s);
}

BOOST_AUTO_TEST_CASE(byte_order_marks_tell_and_vanish) {
    BOOST_TEST(decode_text("\xEF\xBB\xBFhi é") == "hi é");
    BOOST_TEST(decode_text("\xFF\xFEh\0i\0 \0\xE9\0"s) == "hi é");
    BOOST_TEST(decode_text("\xFE\xFF\0h\0i\0 \0\xE9"s) == "hi é");
    BOOST_TEST(decode_text("\xFF\xFE\0\0h\0\0\0\xE9\0\0\0"s) == "hé");
    BOOST_TEST(decode_text("\0\0\xFE\xFF\0\0\0h\0\0\0\xE9"s) == "hé");
    BOOST_TEST(decode_unknown("\xFF\xFEh\0i\0"s).value() == "hi");
    BOOST_TEST(decode_text("\xEF\xBB\xBF") == "");
    BOOST_TEST(decode_text("\xFF\xFEh\0i"s) == "h\xEF\xBF\xBD"); // cut in the middle of a unit
}

BOOST_AUTO_TEST_CASE(legacy_encodings) {
    for (const sample& one : {cyrillic, koi, french, chinese, japanese}) {
        BOOST_TEST(decode_text(repeated(one.bytes, 5)) == repeated(one.text, 5));
        BOOST_TEST(decode_unknown(repeated(one.bytes, 5)).value() == repeated(one.text, 5));
    }
}

BOOST_AUTO_TEST_CASE(a_few_letters_are_taken_for_the_common_alphabet) {
    BOOST_TEST(decode_text("caf\xE9\n") == "café\n");
    BOOST_TEST(decode_text("M\xFCller") == "Müller");
    BOOST_TEST(decode_text("na\xEFve") == "naïve");
    BOOST_TEST(decode_text("\x93smart\x94 \x96 quotes, 10 \x80") == "“smart” – quotes, 10 €");
    BOOST_TEST(decode_text("\xA9 2024") == "© 2024");
}

BOOST_AUTO_TEST_CASE(quotes_and_dashes_tell_windows_from_iso) {
    // Taken for Greek by the detector, which has controls at these places.
    BOOST_TEST(decode_text(repeated("\x93Smart\x94 \x96 quotes for 10 \x80\x85 and dashes \x97 here. ", 5)) ==
               repeated("“Smart” – quotes for 10 €… and dashes — here. ", 5));
    BOOST_TEST(from_western("\x93\xE9") == "“é");
    BOOST_TEST(from_western("\x81\xE9") == "\xC2\x81é");
}

BOOST_AUTO_TEST_CASE(utf8_with_a_few_faults_stays_utf8) {
    const std::string lines = repeated("你好，世界。\n", 20);
    BOOST_TEST(decode_text(lines + "\xFF\n" + lines) == lines + "\xEF\xBF\xBD\n" + lines);
    BOOST_TEST(decode_unknown(lines + "\xFF\n" + lines).value() == lines + "\xEF\xBF\xBD\n" + lines);
}

BOOST_AUTO_TEST_CASE(text_types_never_fail) {
    std::string all;
    for (int c = 0; c < 256; ++c) {
        all += static_cast<char>(c);
    }
    BOOST_TEST(decode_text(all) == from_latin1(all));
    std::mt19937 random(5);
    for (int i = 0; i < 200; ++i) {
        std::string bytes;
        for (std::size_t n = random() % 400; bytes.size() < n;) {
            bytes += static_cast<char>(random());
        }
        const std::string text = decode_text(bytes);
        BOOST_TEST((bytes.empty() || !text.empty() || bytes.size() <= 4));
    }
}

BOOST_AUTO_TEST_CASE(binary_is_told_from_text) {
    std::string picture = "\x89PNG\r\n\x1A\n\0\0\0\rIHDR"s;
    std::mt19937 random(7);
    for (int i = 0; i < 500; ++i) {
        picture += static_cast<char>(random());
    }
    BOOST_TEST(!decode_unknown(picture).has_value());
    BOOST_TEST(!decode_unknown("\x7F"
                               "ELF\2\1\1\0\xFF\xFE\x80\x81"s)
                    .has_value());
    std::string all;
    for (int c = 0; c < 256; ++c) {
        all += static_cast<char>(c);
    }
    BOOST_TEST(!decode_unknown(all).has_value());
    const auto refused = quick_extract("x.bin", picture);
    BOOST_TEST(refused.error().message == "[Binary File]");
    BOOST_TEST(quick_extract("x.txt", picture).value() == decode_text(picture));
}

BOOST_AUTO_TEST_CASE(one_replaced_character_is_forgiven_two_in_a_short_text_are_not) {
    // NULs keep the detector out of it.
    BOOST_TEST(decode_unknown("a\0b\xFF"s).value() == "a\0b\xEF\xBF\xBD"s);
    BOOST_TEST(!decode_unknown("a\0b\xFF\xFF"s).has_value());
    BOOST_TEST(decode_unknown("a\0b\xFF\xFF"s + std::string(300, 'x')).has_value());
    // exactly one per cent is too much: below it is asked for
    BOOST_TEST(!decode_unknown("\0\xFF\xFF"s + std::string(197, 'x')).has_value());
    BOOST_TEST(decode_unknown("\0\xFF\xFF"s + std::string(198, 'x')).has_value());
}

BOOST_AUTO_TEST_CASE(conversions_are_strict_or_replace) {
    BOOST_TEST(convert("CP1252", "\x80\xE9").value() == "€é");
    BOOST_TEST(!convert("CP1252", "a\x81").has_value());
    BOOST_TEST(convert_replacing("CP1252", "a\x81"
                                           "b\x81")
                   .value() == "a\xEF\xBF\xBD"
                               "b\xEF\xBF\xBD");
    BOOST_TEST(!convert("GB18030", "\xC4").has_value());
    BOOST_TEST(convert_replacing("GB18030", "a\xC4").value() == "a\xEF\xBF\xBD");
    BOOST_TEST(!convert("NO-SUCH", "a").has_value());
    BOOST_TEST(!convert_replacing("NO-SUCH", "a").has_value());
    const std::string large(100'000, '\xE9');
    BOOST_TEST(convert("CP1252", large).value() == repeated("é", 100'000));
    BOOST_TEST(from_latin1("\x7F\x80\xFF") == "\x7F\xC2\x80\xC3\xBF");
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace sandboxd::text
