#include "wire/fixture.hpp"
#include "wire/params.hpp"

BOOST_AUTO_TEST_SUITE(wire_requests)
using namespace wire_test;

namespace {

/// Refuses unknown keys, as PUT /policy will.
struct strict_body {
    std::optional<double> cpus;

    static constexpr bool forbids_unknown = true;
    static constexpr auto fields() {
        return std::tuple{optional("cpus", &strict_body::cpus, {.above = 0.0})};
    }
};

} // namespace

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

BOOST_AUTO_TEST_SUITE_END()
