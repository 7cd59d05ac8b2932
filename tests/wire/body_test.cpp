#include "wire/fixture.hpp"

BOOST_AUTO_TEST_SUITE(wire_bodies)
using namespace wire_test;

BOOST_AUTO_TEST_CASE(bodies_that_are_no_object) {
    const std::string words =
        R"("msg":"Input should be a valid dictionary or object to extract fields from","input":)";
    for (const char* text : {"null", "[]", "1", "\"x\"", "true"}) {
        BOOST_TEST(refused<exec_body>(text) ==
                   R"({"type":"model_attributes_type","loc":["body"],)" + words + text + "}");
    }
    fault_list faults;
    BOOST_TEST(!read_model<exec_body>(parsed_body{}, faults).has_value());
    BOOST_TEST(faults_body(faults) ==
               R"({"detail":[{"type":"missing","loc":["body"],"msg":"Field required","input":null}]})");
    const auto raw = parse_body("text/plain", "{\"command\":\"x\"}\xFF");
    fault_list raw_faults;
    BOOST_TEST(!read_model<exec_body>(std::get<parsed_body>(raw), raw_faults).has_value());
    BOOST_TEST(faults_body(raw_faults) == R"({"detail":[{"type":"model_attributes_type","loc":["body"],)" +
                                              words + "\"{\\\"command\\\":\\\"x\\\"}\xEF\xBF\xBD\"}]}");
}

BOOST_AUTO_TEST_CASE(content_types) {
    for (const char* type :
         {"application/json", "application/JSON; charset=x", "application/vnd.a+json", "application/json;",
          "application/+json", "application/x+JSON", " application/json "}) {
        BOOST_TEST(is_json_type(type), type);
    }
    for (const char* type : {"", ";", "application/x", "text/plain", "text/json", "json", "application/jsonx",
                             "application", "a/b/json", "application/json+xml", "multipart/form-data"}) {
        BOOST_TEST(!is_json_type(type), type);
    }
    const auto absent = parse_body(std::nullopt, R"({"a":1})");
    BOOST_TEST(std::get<parsed_body>(absent).value.is_object());
    BOOST_TEST(std::get<parsed_body>(parse_body("text/plain", "")).present == false);
    BOOST_TEST(std::get<parsed_body>(parse_body("application/json", "")).present == false);
}

BOOST_AUTO_TEST_CASE(broken_bodies) {
    const auto failure = [](std::string_view bytes) {
        const auto got = parse_body("application/json", bytes);
        BOOST_REQUIRE(std::holds_alternative<body_failure>(got));
        return std::get<body_failure>(got);
    };
    BOOST_TEST(failure("{").status == 422);
    BOOST_TEST(
        failure("{").body ==
        R"({"detail":[{"type":"json_invalid","loc":["body",1],"msg":"JSON decode error","input":{},"ctx":{"error":"Expecting property name enclosed in double quotes"}}]})");
    BOOST_TEST(
        failure("\"\\u12\"").body ==
        R"({"detail":[{"type":"json_invalid","loc":["body",2],"msg":"JSON decode error","input":{},"ctx":{"error":"Invalid \\uXXXX escape"}}]})");
    for (const char* bytes : {"\xFF", "{\"command\":\"\xFF\"}", "{\"command\":\"\xED\xA0\x80\"}"}) {
        BOOST_TEST(failure(bytes).status == 400);
        BOOST_TEST(failure(bytes).body == R"({"detail":"There was an error parsing the body"})");
    }
    BOOST_TEST(failure(std::string(5000, '[')).status == 400);
}

BOOST_AUTO_TEST_CASE(faults_do_not_repeat_much_of_the_input) {
    const std::string one = refused<exec_body>(R"({"big":")" + std::string(100'000, 'x') + "\"}");
    BOOST_TEST(one.size() < 4400U);
    BOOST_TEST(one.starts_with(
        R"({"type":"missing","loc":["body","command"],"msg":"Field required","input":"{\"big\":\"xxx)"));
    BOOST_TEST(one.ends_with("xxx...\"}"));
    std::string many = R"({"run_id":")" + run_id + R"(","argv":[0)";
    for (int i = 0; i < 1000; ++i) {
        many += ",0";
    }
    fault_list faults;
    BOOST_TEST(!read_model<run_body>(parsed(many + "]}"), faults).has_value());
    BOOST_TEST(faults.size() == 100U);
}

BOOST_AUTO_TEST_SUITE_END()
