#include "wire/answers.hpp"
#include "wire/fixture.hpp"

BOOST_AUTO_TEST_SUITE(wire_answers)
using namespace wire_test;

BOOST_AUTO_TEST_CASE(the_weight_of_an_answer_is_about_that_of_its_json) {
    const auto near = [](const auto& answer) {
        const auto weight = sandboxd::wire::weight(answer);
        const auto size = to_json(answer).size();
        BOOST_TEST((weight > size * 2 / 3 && weight < size * 3 / 2), "weight " << weight << " of " << size);
    };
    session_info session;
    session.session_id = "a-session";
    near(session);
    session_list list;
    list.sessions.assign(1'000, session);
    near(list);
    session_created created{session, std::string(300'000, 't')};
    near(created);
    service_health health;
    health.runtimes.assign(5'000, std::string(50, 'r'));
    near(health);
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
        R"({"status":"ok","sessions":0,"limit":20,"open_sessions":0,"open_limit":null,"runtimes":["coding","node"],"degraded":null,"warming":[]})");
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
                                                 "native_realpath",
                                                 "not_enforced",
                                                 "overridden"};
    BOOST_TEST(names == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(the_answer_of_an_exec) {
    exec_answer answer;
    answer.output = "hi\n\xFF";
    answer.exit_code = 137;
    answer.truncated = true;
    answer.signal = 9;
    answer.oom_killed = true;
    answer.duration_ms = 2;
    answer.output_dropped_bytes = 7;
    BOOST_TEST(to_json(answer) ==
               "{\"output\":\"hi\\n\xEF\xBF\xBD\",\"exit_code\":137,\"truncated\":true,\"signal\":9,"
               "\"timed_out\":false,\"oom_killed\":true,\"duration_ms\":2,\"output_dropped_bytes\":7}");
}

BOOST_AUTO_TEST_CASE(the_answer_of_a_run) {
    run_answer answer;
    answer.std_out = "o";
    answer.std_err = "e";
    answer.exit_code = 0;
    BOOST_TEST(
        to_json(answer) ==
        R"({"stdout":"o","stderr":"e","exit_code":0,"timed_out":false,"output_limited":false,"output_limit":null,"signal":null,"oom_killed":false,"duration_ms":0,"output_dropped_bytes":0})");
    answer.exit_code.reset();
    answer.output_limited = true;
    answer.output_limit = 10'485'760;
    BOOST_TEST(
        to_json(answer) ==
        R"({"stdout":"o","stderr":"e","exit_code":null,"timed_out":false,"output_limited":true,"output_limit":10485760,"signal":null,"oom_killed":false,"duration_ms":0,"output_dropped_bytes":0})");
}

BOOST_AUTO_TEST_SUITE_END()
