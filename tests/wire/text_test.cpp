#include "core/utf8.hpp"
#include "wire/json_parse.hpp"
#include "wire/json_text.hpp"

#include <boost/json.hpp>
#include <boost/test/unit_test.hpp>

#include <cmath>
#include <limits>

BOOST_AUTO_TEST_SUITE(wire_text)
using namespace sandboxd::wire;

namespace {

std::string literal(std::string_view text) {
    std::string out;
    append_string(out, text);
    return out;
}

std::string number(double value) {
    std::string out;
    append_number(out, value);
    return out;
}

/// The parsed value as our own JSON; the test fails when the text does not parse.
std::string round_trip(std::string_view text) {
    const auto parsed = parse_json(text);
    BOOST_REQUIRE_MESSAGE(std::holds_alternative<boost::json::value>(parsed), text << " did not parse");
    std::string out;
    append_value(out, std::get<boost::json::value>(parsed));
    return out;
}

} // namespace

BOOST_AUTO_TEST_CASE(ill_formed_bytes_are_replaced_by_maximal_subparts) {
    // The right column is what Python's bytes.decode("utf-8", "replace") gives; ? stands for U+FFFD.
    const std::pair<std::string, std::string> cases[]{
        {"", ""},
        {"plain", "plain"},
        {"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80", "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"},
        {"\x80", "?"},
        {"\xC0\x80", "??"},
        {"\xC3", "?"},
        {"\xC3(", "?("},
        {"\xE2\x82", "?"},
        {"\xE2\x82x", "?x"},
        {"\xE2\x28\xA1", "?(?"},
        {"\xED\xA0\x80", "???"},
        {"\xE0\x80\x80", "???"},
        {"\xF0\x9F\x98", "?"},
        {"\xF0\x80\x80\x80", "????"},
        {"\xF4\x90\x80\x80", "????"},
        {"\xF5\xFF", "??"},
        {"a\xFF"
         "b\xFE"
         "c",
         "a?b?c"},
        {"12345678\xFF"
         "12345678",
         "12345678?12345678"},
        {"\xF0\x9F\xC3\xA9", "?\xC3\xA9"}};
    for (const auto& [bytes, shown] : cases) {
        std::string expected;
        for (const char c : shown) {
            c == '?' ? expected.append(sandboxd::core::replacement) : expected.append(1, c);
        }
        BOOST_TEST(sandboxd::core::to_utf8(bytes) == expected);
        BOOST_TEST(literal(bytes) == "\"" + expected + "\"");
        BOOST_TEST(sandboxd::core::is_utf8(bytes) == (bytes == expected));
        BOOST_TEST(sandboxd::core::is_utf8(sandboxd::core::to_utf8(bytes)));
    }
}

BOOST_AUTO_TEST_CASE(string_literals) {
    BOOST_TEST(literal("") == "\"\"");
    BOOST_TEST(literal("a\"b\\c/\n\r\t\b\f") == R"("a\"b\\c/\n\r\t\b\f")");
    BOOST_TEST(literal(std::string("\x00\x01\x1F\x7F", 4)) == "\"\\u0000\\u0001\\u001f\x7F\"");
    // Every byte at every place within a word of eight.
    for (int byte = 0; byte < 128; ++byte) {
        for (std::size_t at = 0; at < 17; ++at) {
            std::string text(17, 'x');
            text[at] = static_cast<char>(byte);
            const auto parsed = parse_json(literal(text));
            BOOST_REQUIRE(std::holds_alternative<boost::json::value>(parsed));
            BOOST_REQUIRE(std::get<boost::json::value>(parsed).as_string() == text);
        }
    }
}

// Strings are passed over eight bytes at a time.
BOOST_AUTO_TEST_CASE(every_character_at_every_place_of_a_string) {
    constexpr std::size_t length = 19;
    for (int byte = 0; byte < 128; ++byte) {
        for (std::size_t place = 0; place < length; ++place) {
            for (const char around : {'a', '~', '\x7f'}) {
                std::string text(length, around);
                text[place] = static_cast<char>(byte);
                const auto parsed = parse_json(literal(text));
                const auto* const value = std::get_if<boost::json::value>(&parsed);
                BOOST_REQUIRE(value != nullptr);
                BOOST_TEST((std::string_view(value->as_string()) == text),
                           "byte " << byte << " at " << place);
                if (byte < 0x20) {
                    const auto raw = parse_json('"' + text + '"');
                    const auto* const fault = std::get_if<json_fault>(&raw);
                    BOOST_REQUIRE(fault != nullptr);
                    BOOST_TEST(fault->text == "Invalid control character at");
                    BOOST_TEST(fault->position == place + 1);
                }
            }
        }
    }
    for (std::size_t place = 0; place < length; ++place) {
        const auto text = std::string(place, 'a') + "ü𝄞" + std::string(length - place, 'a');
        BOOST_TEST(round_trip('"' + text + '"') == '"' + text + '"');
    }
}

BOOST_AUTO_TEST_CASE(numbers) {
    BOOST_TEST(number(2.0) == "2.0");
    BOOST_TEST(number(0.1) == "0.1");
    BOOST_TEST(number(-1.5) == "-1.5");
    BOOST_TEST(number(0.0) == "0.0");
    BOOST_TEST(number(100000.0) == "100000.0");
    BOOST_TEST(number(1732903200.25) == "1732903200.25");
    BOOST_TEST(number(1e300) == "1e+300");
    BOOST_TEST(number(std::numeric_limits<double>::infinity()) == "null");
    BOOST_TEST(number(std::nan("")) == "null");
}

BOOST_AUTO_TEST_CASE(values_round_trip) {
    BOOST_TEST(round_trip(" {\"a\" : [ 1 , -2.5 , true , false , null , \"x\\u00e9\" , { } , [ ] ] } ") ==
               "{\"a\":[1,-2.5,true,false,null,\"x\xC3\xA9\",{},[]]}");
    BOOST_TEST(round_trip("\xEF\xBB\xBF{}") == "{}");
    BOOST_TEST(round_trip(R"("\ud83d\ude00")") == "\"\xF0\x9F\x98\x80\"");
    BOOST_TEST(round_trip(R"("\ud800")") == "\"\xEF\xBF\xBD\"");
    BOOST_TEST(round_trip(R"("\ud800\u0041")") == "\"\xEF\xBF\xBD"
                                                  "A\"");
    BOOST_TEST(round_trip(R"("\udc00\ud800x")") == "\"\xEF\xBF\xBD\xEF\xBF\xBDx\"");
    BOOST_TEST(round_trip(R"({"a":1,"b":2,"a":3})") == "{\"a\":3,\"b\":2}");
    BOOST_TEST(round_trip("99999999999999999999") == "9223372036854775807");
    BOOST_TEST(round_trip("-99999999999999999999") == "-9223372036854775808");
    BOOST_TEST(round_trip("9223372036854775807") == "9223372036854775807");
    BOOST_TEST(round_trip("1e3") == "1000.0");
    BOOST_TEST(round_trip("-0.0") == "-0.0");
    BOOST_TEST(round_trip("1e-400") == "0.0");
    BOOST_TEST(round_trip("[NaN,Infinity,-Infinity,1e400]") == "[null,null,null,null]");
}

BOOST_AUTO_TEST_CASE(faults_have_cpythons_place_and_words) {
    struct row {
        std::string_view text;
        std::size_t position;
        std::string_view words;
    };
    constexpr std::string_view name = "Expecting property name enclosed in double quotes";
    const row rows[]{{"{", 1, name},
                     {"[", 1, "Expecting value"},
                     {"{\"a\"", 4, "Expecting ':' delimiter"},
                     {"{\"a\":", 5, "Expecting value"},
                     {"{\"a\":1", 6, "Expecting ',' delimiter"},
                     {"{\"a\":1,", 7, name},
                     {"{\"a\":1,}", 7, name},
                     {"[1,]", 3, "Expecting value"},
                     {"[1", 2, "Expecting ',' delimiter"},
                     {"[1 2]", 3, "Expecting ',' delimiter"},
                     {"{\"a\" 1}", 5, "Expecting ':' delimiter"},
                     {"{a:1}", 1, name},
                     {"nul", 0, "Expecting value"},
                     {"\"abc", 0, "Unterminated string starting at"},
                     {"\"a\nb\"", 2, "Invalid control character at"},
                     {"\"\\x\"", 1, "Invalid \\escape"},
                     {"\"\\u12\"", 2, "Invalid \\uXXXX escape"},
                     {"\"\\u12g4\"", 2, "Invalid \\uXXXX escape"},
                     {"\"\\ud800\\u12\"", 8, "Invalid \\uXXXX escape"},
                     {"\"\\", 0, "Unterminated string starting at"},
                     {"{\"a\":1} x", 8, "Extra data"},
                     {"01", 1, "Extra data"},
                     {"-01", 2, "Extra data"},
                     {"1.", 1, "Extra data"},
                     {"1e", 1, "Extra data"},
                     {"1.5.5", 3, "Extra data"},
                     {"-", 0, "Expecting value"},
                     {"+1", 0, "Expecting value"},
                     {".5", 0, "Expecting value"},
                     {"  ", 2, "Expecting value"},
                     {"-Infinit", 0, "Expecting value"},
                     {"{\"\xC3\xA9\":x}", 5, "Expecting value"},
                     {"[NaN,Infinity,-Infinity,-x]", 24, "Expecting value"},
                     {"\n\n{\n \"a\":\n}", 10, "Expecting value"},
                     {"{\"a\":[}", 6, "Expecting value"},
                     {"[1}", 2, "Expecting ',' delimiter"}};
    for (const auto& [text, position, words] : rows) {
        const auto parsed = parse_json(text);
        BOOST_REQUIRE_MESSAGE(std::holds_alternative<json_fault>(parsed), text << " parsed");
        BOOST_TEST(std::get<json_fault>(parsed).position == position, text);
        BOOST_TEST(std::get<json_fault>(parsed).text == words, text);
    }
}

BOOST_AUTO_TEST_CASE(depth_and_number_of_values_are_bounded) {
    const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
    BOOST_TEST(std::holds_alternative<boost::json::value>(parse_json(nested(101))));
    BOOST_TEST(std::holds_alternative<json_too_big>(parse_json(nested(102))));
    BOOST_TEST(std::holds_alternative<json_too_big>(parse_json(std::string(1'000'000, '['))));
    std::string many = "[0";
    for (int i = 0; i < 1'000'000; ++i) {
        many += ",0";
    }
    BOOST_TEST(std::holds_alternative<json_too_big>(parse_json(many + "]")));
}

BOOST_AUTO_TEST_SUITE_END()
