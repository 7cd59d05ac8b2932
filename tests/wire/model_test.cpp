#include "wire/answers.hpp"
#include "wire/body.hpp"
#include "wire/params.hpp"
#include "wire/requests.hpp"

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(wire_models)
using namespace sandboxd::wire;

namespace {

const std::string run_id(32, 'a');

parsed_body parsed(std::string_view text) {
    auto got = parse_body("application/json", text);
    BOOST_REQUIRE_MESSAGE(std::holds_alternative<parsed_body>(got), text << " is no JSON");
    return std::get<parsed_body>(std::move(got));
}

template <class T>
T accepted(std::string_view text) {
    fault_list faults;
    auto got = read_model<T>(parsed(text), faults);
    BOOST_REQUIRE_MESSAGE(got.has_value(), text << " was refused: " << faults_body(faults));
    return *got;
}

/// The rows of the 422's detail, without the wrapping.
template <class T>
std::string refused(std::string_view text) {
    fault_list faults;
    const auto got = read_model<T>(parsed(text), faults);
    BOOST_REQUIRE_MESSAGE(!got.has_value(), text << " was accepted");
    const std::string body = faults_body(faults);
    return body.substr(11, body.size() - 13);
}

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

/// Refuses unknown keys, as PUT /policy will.
struct strict_body {
    std::optional<double> cpus;

    static constexpr bool forbids_unknown = true;
    static constexpr auto fields() {
        return std::tuple{optional("cpus", &strict_body::cpus, {.above = 0.0})};
    }
};

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

BOOST_AUTO_TEST_CASE(opening) {
    const auto empty = accepted<open_body>("{}");
    BOOST_TEST(!empty.session_id.has_value());
    BOOST_TEST(!empty.runtime.has_value());
    BOOST_TEST(!empty.tenant.has_value());
    BOOST_TEST(empty.reuse == false);
    BOOST_TEST(empty.attach == false);
    const auto full = accepted<open_body>(
        R"({"session_id":"user-123.v2","runtime":"","tenant":"a","reuse":true,"attach":"on","network_mode":"host"})");
    BOOST_TEST((full.session_id == "user-123.v2"));
    BOOST_TEST((full.runtime == ""));
    BOOST_TEST((full.tenant == "a"));
    BOOST_TEST(full.attach == true);
    BOOST_TEST((accepted<open_body>(R"({"session_id":")" + std::string(64, 'a') + "\"}").session_id ==
                std::string(64, 'a')));
    const std::string pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$";
    for (const char* text :
         {"\"a\\n\"", "\"\"", "\"../x\"", "\"\xC3\xA9\"", "\"\\u0000\"", "\"a/b\"", "\".a\""}) {
        BOOST_TEST(
            refused<open_body>(std::string(R"({"session_id":)") + text + "}") ==
            R"({"type":"string_pattern_mismatch","loc":["body","session_id"],"msg":"String should match pattern ')" +
                pattern + R"('","input":)" + text + R"(,"ctx":{"pattern":")" + pattern + "\"}}");
    }
    BOOST_TEST(
        refused<open_body>(R"({"session_id":1})") ==
        R"({"type":"string_type","loc":["body","session_id"],"msg":"Input should be a valid string","input":1})");
    BOOST_TEST(refused<open_body>(R"({"tenant":")" + std::string(65, 'a') + "\"}")
                   .starts_with(R"({"type":"string_pattern_mismatch","loc":["body","tenant"])"));
}

BOOST_AUTO_TEST_CASE(running) {
    const auto got =
        accepted<run_body>(R"({"argv":["a",""],"env":{"B":"2","A":"1"},"run_id":")" + run_id + R"(","x":1})");
    BOOST_TEST((got.argv == std::vector<std::string>{"a", ""}));
    BOOST_TEST((got.env == std::vector<std::pair<std::string, std::string>>{{"B", "2"}, {"A", "1"}}));
    BOOST_TEST(got.run_id == run_id);
    BOOST_TEST(
        refused<run_body>(R"({"argv":[],"run_id":"A"})") ==
        R"({"type":"too_short","loc":["body","argv"],"msg":"List should have at least 1 item after validation, not 0","input":[],"ctx":{"field_type":"List","min_length":1,"actual_length":0}},)"
        R"({"type":"string_pattern_mismatch","loc":["body","run_id"],"msg":"String should match pattern '^[0-9a-f]{32}$'","input":"A","ctx":{"pattern":"^[0-9a-f]{32}$"}})");
    BOOST_TEST(
        refused<run_body>(R"({"argv":[1,null],"env":{"a":1,"b":null},"run_id":")" + run_id + "\"}") ==
        R"({"type":"string_type","loc":["body","argv",0],"msg":"Input should be a valid string","input":1},)"
        R"({"type":"string_type","loc":["body","argv",1],"msg":"Input should be a valid string","input":null},)"
        R"({"type":"string_type","loc":["body","env","a"],"msg":"Input should be a valid string","input":1},)"
        R"({"type":"string_type","loc":["body","env","b"],"msg":"Input should be a valid string","input":null})");
    BOOST_TEST(
        refused<run_body>(R"({"argv":"x","env":[],"run_id":5})") ==
        R"({"type":"list_type","loc":["body","argv"],"msg":"Input should be a valid list","input":"x"},)"
        R"({"type":"dict_type","loc":["body","env"],"msg":"Input should be a valid dictionary","input":[]},)"
        R"({"type":"string_type","loc":["body","run_id"],"msg":"Input should be a valid string","input":5})");
    BOOST_TEST(refused<run_body>("{}") ==
               R"({"type":"missing","loc":["body","argv"],"msg":"Field required","input":{}},)"
               R"({"type":"missing","loc":["body","run_id"],"msg":"Field required","input":{}})");
    BOOST_TEST(
        refused<run_body>(R"({"argv":["a"],"env":null,"run_id":")" + run_id + "\"}") ==
        R"({"type":"dict_type","loc":["body","env"],"msg":"Input should be a valid dictionary","input":null})");
    BOOST_TEST(refused<run_body>(R"({"argv":["a"],"run_id":")" + std::string(32, 'A') + "\"}")
                   .starts_with(R"({"type":"string_pattern_mismatch")"));
    BOOST_TEST(refused<run_body>(R"({"argv":["a"],"run_id":")" + run_id + "\\n\"}")
                   .starts_with(R"({"type":"string_pattern_mismatch")"));
}

BOOST_AUTO_TEST_CASE(a_nul_is_refused_where_programs_would_get_it) {
    BOOST_TEST(
        refused<exec_body>(R"({"command":"a\u0000b"})") ==
        R"({"type":"value_error","loc":["body","command"],"msg":"Value error, must not hold a NUL character","input":"a\u0000b","ctx":{"error":{}}})");
    BOOST_TEST(
        refused<run_body>(R"({"argv":["\u0000"],"env":{"\u0000":"x","A":"\u0000"},"run_id":")" + run_id +
                          "\"}") ==
        R"({"type":"value_error","loc":["body","argv",0],"msg":"Value error, must not hold a NUL character","input":"\u0000","ctx":{"error":{}}},)"
        R"({"type":"value_error","loc":["body","env","\u0000"],"msg":"Value error, must not hold a NUL character","input":"\u0000","ctx":{"error":{}}},)"
        R"({"type":"value_error","loc":["body","env","A"],"msg":"Value error, must not hold a NUL character","input":"\u0000","ctx":{"error":{}}})");
    BOOST_TEST(refused<grep_body>(R"({"pattern":"\u0000"})").starts_with(R"({"type":"value_error")"));
}

BOOST_AUTO_TEST_CASE(the_other_operations) {
    const auto read = accepted<read_body>(R"({"path":"a"})");
    BOOST_TEST(read.offset == 0);
    BOOST_TEST(read.limit == 2000);
    BOOST_TEST(
        refused<read_body>(R"({"offset":-1,"limit":0})") ==
        R"({"type":"missing","loc":["body","path"],"msg":"Field required","input":{"offset":-1,"limit":0}},)"
        R"({"type":"greater_than_equal","loc":["body","offset"],"msg":"Input should be greater than or equal to 0","input":-1,"ctx":{"ge":0}},)"
        R"({"type":"greater_than_equal","loc":["body","limit"],"msg":"Input should be greater than or equal to 1","input":0,"ctx":{"ge":1}})");
    BOOST_TEST(
        refused<read_body>(R"({"path":1,"offset":-1.0,"limit":"0"})") ==
        R"({"type":"string_type","loc":["body","path"],"msg":"Input should be a valid string","input":1},)"
        R"({"type":"greater_than_equal","loc":["body","offset"],"msg":"Input should be greater than or equal to 0","input":-1.0,"ctx":{"ge":0}},)"
        R"({"type":"greater_than_equal","loc":["body","limit"],"msg":"Input should be greater than or equal to 1","input":"0","ctx":{"ge":1}})");
    BOOST_TEST(accepted<path_body>(R"({"path":""})").path == "");
    BOOST_TEST(accepted<write_body>(R"({"path":"p","content_b64":""})").content_b64 == "");
    BOOST_TEST(accepted<edit_body>(R"({"path":"p","old_string":"a","new_string":"b"})").replace_all == false);
    BOOST_TEST(accepted<glob_body>(R"({"pattern":"*"})").path == "/");
    const auto grep = accepted<grep_body>(R"({"pattern":"x","path":null})");
    BOOST_TEST(grep.ignore_hidden == true);
    BOOST_TEST(!grep.path.has_value());
    BOOST_TEST(!grep.glob.has_value());
}

BOOST_AUTO_TEST_CASE(unknown_keys_where_they_are_forbidden) {
    BOOST_TEST((accepted<strict_body>(R"({"cpus":"1.5"})").cpus == 1.5));
    BOOST_TEST(
        refused<strict_body>(R"({"cpus":0,"network_mode":"host","a":[{"b":2}]})") ==
        R"({"type":"greater_than","loc":["body","cpus"],"msg":"Input should be greater than 0","input":0,"ctx":{"gt":0.0}},)"
        R"({"type":"extra_forbidden","loc":["body","network_mode"],"msg":"Extra inputs are not permitted","input":"host"},)"
        R"({"type":"extra_forbidden","loc":["body","a"],"msg":"Extra inputs are not permitted","input":[{"b":2}]})");
}

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

BOOST_AUTO_TEST_CASE(parameters_of_path_and_query) {
    fault_list faults;
    BOOST_TEST(check_session_id("s-0123", faults));
    BOOST_TEST(check_run_id(run_id, faults));
    BOOST_TEST((read_query_flag("usage", std::nullopt, false, faults) == false));
    BOOST_TEST((read_query_flag("usage", "YES", false, faults) == true));
    BOOST_TEST((read_query_flag("purge", "0", true, faults) == false));
    BOOST_TEST((read_query_integer("after", std::nullopt, 0, 0, faults) == 0));
    BOOST_TEST((read_query_integer("after", " 1_0 ", 0, 0, faults) == 10));
    BOOST_TEST((read_query_integer("after", "1.0", 0, 0, faults) == 1));
    BOOST_TEST(faults.empty());
    BOOST_TEST(!check_session_id("..x", faults));
    BOOST_TEST(!check_run_id("A", faults));
    BOOST_TEST(!read_query_integer("after", "-1", 0, 0, faults).has_value());
    BOOST_TEST(!read_query_integer("after", "", 0, 0, faults).has_value());
    BOOST_TEST(!read_query_integer("after", "true", 0, 0, faults).has_value());
    BOOST_TEST(!read_query_flag("usage", "", false, faults).has_value());
    BOOST_TEST(
        faults_body(faults) ==
        R"({"detail":[{"type":"string_pattern_mismatch","loc":["path","session_id"],"msg":"String should match pattern '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$'","input":"..x","ctx":{"pattern":"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"}},)"
        R"({"type":"string_pattern_mismatch","loc":["path","run_id"],"msg":"String should match pattern '^[0-9a-f]{32}$'","input":"A","ctx":{"pattern":"^[0-9a-f]{32}$"}},)"
        R"({"type":"greater_than_equal","loc":["query","after"],"msg":"Input should be greater than or equal to 0","input":"-1","ctx":{"ge":0}},)"
        R"({"type":"int_parsing","loc":["query","after"],"msg":"Input should be a valid integer, unable to parse string as an integer","input":""},)"
        R"({"type":"int_parsing","loc":["query","after"],"msg":"Input should be a valid integer, unable to parse string as an integer","input":"true"},)"
        R"({"type":"bool_parsing","loc":["query","usage"],"msg":"Input should be a valid boolean, unable to interpret input","input":""}]})");
}

BOOST_AUTO_TEST_CASE(answers_hold_every_field) {
    session_info session;
    session.session_id = "s-1";
    session.runtime = "host";
    session.alive = true;
    session.created_at = 1732903200.25;
    session.last_activity = 1732903201;
    BOOST_TEST(
        to_json(session) ==
        R"({"session_id":"s-1","runtime":"host","tenant":null,"alive":true,"state":"running","created_at":1732903200.25,"last_activity":1732903201.0,"idle_seconds":0.0,"usage":null})");
    session.usage = session_usage{5, std::nullopt, 1.5, 2};
    BOOST_TEST(
        to_json(session_created{session, "tok"})
            .ends_with(
                R"("usage":{"memory_bytes":5,"memory_limit_bytes":null,"cpu_percent":1.5,"pids":2}},"token":"tok"})"));
    BOOST_TEST(to_json(session_list{}) ==
               R"({"sessions":[],"limit":null,"open_limit":null,"tenant_limit":null})");
    service_health health;
    health.limit = 20;
    health.runtimes = {"coding", "node"};
    BOOST_TEST(
        to_json(health) ==
        R"({"status":"ok","sessions":0,"limit":20,"open_sessions":0,"open_limit":null,"runtimes":["coding","node"]})");
    service_index index;
    index.health = health;
    index.endpoints = {"/healthz"};
    BOOST_TEST(
        to_json(index) ==
        R"({"service":"sandboxd","health":)" + to_json(health) +
            R"(,"docs_url":"/docs","openapi_url":"/openapi.json","ui_url":null,"endpoints":["/healthz"]})");
    session_event event{1, 2.5, "exec", "echo", true, "exit 0", 1.2};
    BOOST_TEST(
        to_json(session_events{{event}, 1}) ==
        R"({"events":[{"seq":1,"at":2.5,"op":"exec","target":"echo","ok":true,"detail":"exit 0","duration_ms":1.2}],"latest_seq":1})");
    runtime_policy runtime{"a", "img", "d", false, "1g", {}, 2.0, {}, 512, "none", {}};
    BOOST_TEST(
        to_json(runtime) ==
        R"({"alias":"a","image":"img","description":"d","builds":false,"mem_limit":"1g","memswap_limit":null,"cpus":2.0,"cpu_shares":null,"pids_limit":512,"network_mode":"none","oci_runtime":null})");
    BOOST_TEST(detail_body("a \"b\"\xFF") == "{\"detail\":\"a \\\"b\\\"\xEF\xBF\xBD\"}");
}

BOOST_AUTO_TEST_CASE(the_policy_has_the_contracts_fields_in_its_order) {
    std::vector<std::string_view> names;
    for_each_field<service_policy>([&names](const auto& one) { names.push_back(one.name); });
    const std::vector<std::string_view> expected{"runtimes",
                                                 "default_runtime",
                                                 "max_sessions",
                                                 "max_open_sessions",
                                                 "max_sessions_per_tenant",
                                                 "evict_idle_after",
                                                 "mem_limit",
                                                 "memswap_limit",
                                                 "cpus",
                                                 "cpu_shares",
                                                 "pids_limit",
                                                 "network_mode",
                                                 "oci_runtime",
                                                 "work_dir",
                                                 "idle_timeout",
                                                 "execute_timeout",
                                                 "max_read_bytes",
                                                 "persist_containers",
                                                 "sandbox_uid",
                                                 "workspace_ttl",
                                                 "container_ttl",
                                                 "tmpfs_size",
                                                 "prewarm",
                                                 "buildkit",
                                                 "native_files",
                                                 "native_writes",
                                                 "native_realpath"};
    BOOST_TEST(names == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(the_answer_of_an_exec) {
    sandboxd::exec_result result;
    result.output = "hi\n\xFF";
    result.status.exit_code = 3;
    result.status.duration = std::chrono::microseconds(1600);
    BOOST_TEST(to_json(answer_of(result)) ==
               "{\"output\":\"hi\\n\xEF\xBF\xBD\",\"exit_code\":3,\"truncated\":false,\"signal\":null,"
               "\"timed_out\":false,\"oom_killed\":false,\"duration_ms\":2,\"output_dropped_bytes\":0}");
    result.status = {};
    result.status.timed_out = true;
    BOOST_TEST((answer_of(result).exit_code == 124));
    result.status = {};
    result.status.signal = 9;
    result.status.oom_killed = true;
    result.status.output_dropped_bytes = 7;
    result.truncated = true;
    const auto killed = answer_of(result);
    BOOST_TEST((killed.exit_code == 137));
    BOOST_TEST((killed.signal == 9));
    BOOST_TEST(killed.oom_killed == true);
    BOOST_TEST(killed.truncated == true);
    BOOST_TEST(killed.output_dropped_bytes == 7U);
}

BOOST_AUTO_TEST_CASE(the_answer_of_a_run) {
    sandboxd::run_result result;
    result.out = "o";
    result.err = "e";
    result.status.exit_code = 0;
    BOOST_TEST(
        to_json(answer_of(result, 10'485'760)) ==
        R"({"stdout":"o","stderr":"e","exit_code":0,"timed_out":false,"output_limited":false,"output_limit":null,"signal":null,"oom_killed":false,"duration_ms":0,"output_dropped_bytes":0})");
    result.output_limited = true;
    const auto limited = answer_of(result, 10'485'760);
    BOOST_TEST(!limited.exit_code.has_value());
    BOOST_TEST((limited.output_limit == 10'485'760));
    result.output_limited = false;
    result.status = {};
    result.status.timed_out = true;
    BOOST_TEST(!answer_of(result, 1).exit_code.has_value());
    BOOST_TEST(answer_of(result, 1).timed_out == true);
    result.status = {};
    result.status.signal = 15;
    BOOST_TEST((answer_of(result, 1).exit_code == 143));
}

BOOST_AUTO_TEST_SUITE_END()
