#include "wire/fixture.hpp"
#include "wire/policy.hpp"

BOOST_AUTO_TEST_SUITE(wire_policy)
using namespace wire_test;
using sandboxd::policy_change;

BOOST_AUTO_TEST_CASE(absent_null_and_a_value_are_three_things) {
    const auto change = accepted<policy_change_body>(R"({"max_sessions":null,"cpus":"1.5"})");
    BOOST_TEST(change.max_sessions.given);
    BOOST_TEST(!change.max_sessions.value.has_value());
    BOOST_TEST(change.cpus.value.value() == 1.5);
    BOOST_TEST(!change.mem_limit.given);
    BOOST_TEST(!accepted<policy_change_body>("{}").max_sessions.given);
    const auto runtimes =
        accepted<policy_change_body>(R"({"runtimes":{"a":{"mem_limit":"1g","cpus":null},"b":{}}})").runtimes;
    BOOST_REQUIRE(runtimes.size() == 2U);
    BOOST_TEST((runtimes.at("a").mem_limit.value == "1g"));
    BOOST_TEST(runtimes.at("a").cpus.given);
    BOOST_TEST(!runtimes.at("a").cpus.value.has_value());
    BOOST_TEST(!runtimes.at("a").pids_limit.given);
    BOOST_TEST((runtimes.at("b") == sandboxd::runtime_change{}));
}

BOOST_AUTO_TEST_CASE(faults_have_their_shapes) {
    BOOST_TEST(refused<policy_change_body>(R"({"image":"x"})") ==
               R"({"type":"extra_forbidden","loc":["body","image"],"msg":"Extra inputs are not permitted",)"
               R"("input":"x"})");
    BOOST_TEST(refused<policy_change_body>(R"({"runtimes":{"a":{"image":"x"}}})") ==
               R"({"type":"extra_forbidden","loc":["body","runtimes","a","image"],)"
               R"("msg":"Extra inputs are not permitted","input":"x"})");
    BOOST_TEST(refused<policy_change_body>(R"({"runtimes":[]})") ==
               R"({"type":"dict_type","loc":["body","runtimes"],"msg":"Input should be a valid dictionary",)"
               R"("input":[]})");
    BOOST_TEST(refused<policy_change_body>(R"({"pids_limit":0})") ==
               R"({"type":"greater_than","loc":["body","pids_limit"],"msg":"Input should be greater than 0",)"
               R"("input":0,"ctx":{"gt":0}})");
    BOOST_TEST(refused<policy_change_body>(R"({"max_sessions":-1})") ==
               R"({"type":"greater_than_equal","loc":["body","max_sessions"],)"
               R"("msg":"Input should be greater than or equal to 0","input":-1,"ctx":{"ge":0}})");
    BOOST_TEST(refused<policy_change_body>(R"({"idle_timeout":null})") ==
               R"({"type":"int_type","loc":["body","idle_timeout"],"msg":"Input should be a valid integer",)"
               R"("input":null})");
    BOOST_TEST(
        refused<policy_change_body>(R"({"default_runtime":null})") ==
        R"({"type":"string_type","loc":["body","default_runtime"],"msg":"Input should be a valid string",)"
        R"("input":null})");
}

BOOST_AUTO_TEST_CASE(text_comes_back_as_it_was) {
    policy_change change;
    change.max_sessions = {true, 3};
    change.mem_limit = {true, std::nullopt};
    change.cpus = {true, 0.1};
    change.tmpfs_size = {true, "6\"m"};
    change.runtimes["a"].cpu_shares = {true, 1024};
    change.runtimes["b"].memswap_limit = {true, std::nullopt};
    const auto text = policy_text(change);
    BOOST_TEST(text == R"({"max_sessions":3,"cpus":0.1,"mem_limit":null,"tmpfs_size":"6\"m",)"
                       R"("runtimes":{"a":{"cpu_shares":1024},"b":{"memswap_limit":null}}})");
    const auto back = parse_policy(text);
    BOOST_REQUIRE(back.has_value());
    BOOST_TEST((*back == change));
    BOOST_TEST(policy_text({}) == "{}");
}

BOOST_AUTO_TEST_CASE(what_is_wrong_with_a_file_is_one_sentence) {
    const auto message = [](const char* text) { return parse_policy(text).error().message; };
    BOOST_TEST(message("{") == "not valid JSON");
    BOOST_TEST(message("") == "not valid JSON");
    BOOST_TEST(message("\xff") == "not valid JSON");
    BOOST_TEST(message("[]").ends_with("extract fields from"));
    BOOST_TEST(message(R"({"network_mode":"host"})") == "network_mode: Extra inputs are not permitted");
    BOOST_TEST(message(R"({"runtimes":{"a":{"cpus":0}}})") ==
               "runtimes.a.cpus: Input should be greater than 0");
}

BOOST_AUTO_TEST_SUITE_END()
