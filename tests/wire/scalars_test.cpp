#include "wire/fixture.hpp"

BOOST_AUTO_TEST_SUITE(wire_scalars)
using namespace wire_test;

namespace {

std::optional<std::int64_t> timeout_of(const std::string& value) {
    return accepted<exec_body>(R"({"command":"x","timeout_seconds":)" + value + "}").timeout_seconds;
}

std::string bad_timeout(const std::string& value) {
    return refused<exec_body>(R"({"command":"x","timeout_seconds":)" + value + "}");
}

std::string bad_run(const std::string& value) {
    return refused<run_body>(R"({"argv":["a"],"run_id":")" + run_id + R"(","timeout_seconds":)" + value +
                             "}");
}

} // namespace

BOOST_AUTO_TEST_CASE(integers_are_read_leniently) {
    for (const auto& [text, value] :
         std::vector<std::pair<std::string, std::int64_t>>{{"1", 1},
                                                           {"1.0", 1},
                                                           {"true", 1},
                                                           {"false", 0},
                                                           {"\"3\"", 3},
                                                           {"\" 7 \"", 7},
                                                           {"\"7.0\"", 7},
                                                           {"\"7.00\"", 7},
                                                           {"\"1_000\"", 1000},
                                                           {"\"1_000.0\"", 1000},
                                                           {"\"+5\"", 5},
                                                           {"\"-5\"", -5},
                                                           {"-1", -1},
                                                           {"1e3", 1000},
                                                           {"\"007\"", 7},
                                                           {"\"\\t7\\n\"", 7},
                                                           {"\"-0\"", 0},
                                                           {"\"0_0\"", 0},
                                                           {"-0.0", 0},
                                                           {"0", 0},
                                                           {"99999999999999999999", INT64_MAX},
                                                           {"\"99999999999999999999\"", INT64_MAX},
                                                           {"\"9223372036854775807\"", INT64_MAX}}) {
        BOOST_TEST((timeout_of(text) == value), text);
    }
    BOOST_TEST(!timeout_of("null").has_value());
    BOOST_TEST(!accepted<exec_body>(R"({"command":"x"})").timeout_seconds.has_value());
}

BOOST_AUTO_TEST_CASE(what_is_no_integer) {
    for (const char* text :
         {"\"7.5\"", "\"x\"", "\"\"", "\"1__0\"", "\"_1\"", "\"1_\"", "\"1e3\"", "\"0x10\"", "\"7.\"",
          "\".0\"", "\"- 5\"", "\"--5\"", "\"1,000\"", "\"NaN\"", "\"inf\"", "\"+-5\""}) {
        BOOST_TEST(
            bad_timeout(text) ==
            std::string(R"({"type":"int_parsing","loc":["body","timeout_seconds"],)") +
                R"("msg":"Input should be a valid integer, unable to parse string as an integer","input":)" +
                text + "}");
    }
    BOOST_TEST(
        bad_timeout("1.5") ==
        R"({"type":"int_from_float","loc":["body","timeout_seconds"],"msg":"Input should be a valid integer, got a number with a fractional part","input":1.5})");
    BOOST_TEST(
        bad_timeout("[]") ==
        R"({"type":"int_type","loc":["body","timeout_seconds"],"msg":"Input should be a valid integer","input":[]})");
    BOOST_TEST(
        bad_timeout("{}") ==
        R"({"type":"int_type","loc":["body","timeout_seconds"],"msg":"Input should be a valid integer","input":{}})");
    BOOST_TEST(
        bad_timeout("1e30") ==
        R"({"type":"int_parsing_size","loc":["body","timeout_seconds"],"msg":"Unable to parse input string as an integer, exceeded maximum size","input":1e+30})");
    for (const char* text : {"NaN", "Infinity", "-Infinity", "1e400"}) {
        BOOST_TEST(
            bad_timeout(text) ==
            R"({"type":"finite_number","loc":["body","timeout_seconds"],"msg":"Input should be a finite number","input":null})");
    }
}

BOOST_AUTO_TEST_CASE(numbers_are_read_leniently) {
    const auto timeout = [](const std::string& value) {
        return accepted<run_body>(R"({"argv":["a"],"run_id":")" + run_id + R"(","timeout_seconds":)" + value +
                                  "}")
            .timeout_seconds;
    };
    for (const auto& [text, value] : std::vector<std::pair<std::string, double>>{{"1", 1},
                                                                                 {"0.5", 0.5},
                                                                                 {"true", 1},
                                                                                 {"\"3\"", 3},
                                                                                 {"\" 7 \"", 7},
                                                                                 {"\"1_000\"", 1000},
                                                                                 {"\"7.5e0\"", 7.5},
                                                                                 {"\".5\"", 0.5},
                                                                                 {"\"5.\"", 5},
                                                                                 {"\"+1\"", 1},
                                                                                 {"\"1_0.5\"", 10.5}}) {
        BOOST_TEST((timeout(text) == value), text);
    }
    BOOST_TEST(!timeout("null").has_value());
    BOOST_TEST(
        bad_run("\"x\"") ==
        R"({"type":"float_parsing","loc":["body","timeout_seconds"],"msg":"Input should be a valid number, unable to parse string as a number","input":"x"})");
    BOOST_TEST(bad_run("\"0x1\"").starts_with(R"({"type":"float_parsing")"));
    BOOST_TEST(bad_run("\"\"").starts_with(R"({"type":"float_parsing")"));
    BOOST_TEST(
        bad_run("[]") ==
        R"({"type":"float_type","loc":["body","timeout_seconds"],"msg":"Input should be a valid number","input":[]})");
    BOOST_TEST(
        bad_run("0") ==
        R"({"type":"greater_than","loc":["body","timeout_seconds"],"msg":"Input should be greater than 0","input":0,"ctx":{"gt":0.0}})");
    BOOST_TEST(
        bad_run("\"-1\"") ==
        R"({"type":"greater_than","loc":["body","timeout_seconds"],"msg":"Input should be greater than 0","input":"-1","ctx":{"gt":0.0}})");
    for (const char* text : {"NaN", "Infinity", "1e400"}) {
        BOOST_TEST(
            bad_run(text) ==
            R"({"type":"finite_number","loc":["body","timeout_seconds"],"msg":"Input should be a finite number","input":null})");
    }
    for (const char* text : {"\"inf\"", "\"NaN\"", "\"infinity\"", "\"1e400\""}) {
        BOOST_TEST(bad_run(text).starts_with(R"({"type":"finite_number")"), text);
    }
}

BOOST_AUTO_TEST_CASE(booleans_are_read_leniently) {
    const auto reuse = [](const std::string& value) {
        return accepted<open_body>(R"({"reuse":)" + value + "}").reuse;
    };
    for (const char* text :
         {"true", "1", "1.0", "\"true\"", "\"T\"", "\"YES\"", "\"y\"", "\"on\"", "\"1\"", "\"tRuE\""}) {
        BOOST_TEST(reuse(text) == true, text);
    }
    for (const char* text :
         {"false", "0", "0.0", "\"false\"", "\"F\"", "\"no\"", "\"n\"", "\"off\"", "\"0\""}) {
        BOOST_TEST(reuse(text) == false, text);
    }
    for (const char* text : {"2", "2.0", "-1", "\" true\"", "\"\"", "\"2\"", "\"1.0\""}) {
        BOOST_TEST(
            refused<open_body>(std::string(R"({"reuse":)") + text + "}") ==
            std::string(
                R"({"type":"bool_parsing","loc":["body","reuse"],"msg":"Input should be a valid boolean, unable to interpret input","input":)") +
                text + "}");
    }
    for (const char* text : {"null", "[]", "{}", "0.5", "1e+22"}) {
        BOOST_TEST(
            refused<open_body>(std::string(R"({"reuse":)") + text + "}") ==
            std::string(
                R"({"type":"bool_type","loc":["body","reuse"],"msg":"Input should be a valid boolean","input":)") +
                text + "}");
    }
    for (const char* text : {"NaN", "1e400"}) {
        BOOST_TEST(
            refused<open_body>(std::string(R"({"reuse":)") + text + "}") ==
            R"({"type":"bool_type","loc":["body","reuse"],"msg":"Input should be a valid boolean","input":null})");
    }
}

BOOST_AUTO_TEST_SUITE_END()
