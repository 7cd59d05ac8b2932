#include "docker/container_spec.hpp"
#include "docker/inspect.hpp"

#include <boost/test/unit_test.hpp>

using namespace sandboxd;
using namespace sandboxd::docker;

namespace {

sandbox_spec full_sandbox() {
    sandbox_spec spec;
    spec.image = "python:3.12-slim";
    spec.limits.memory_bytes = 512U << 20U;
    spec.limits.cpus = 1.5;
    spec.limits.cpu_shares = 512;
    spec.limits.pids = 512;
    spec.limits.tmpfs_size = "64m";
    spec.network_mode = "none";
    spec.oci_runtime = "runsc";
    spec.work_dir = "/workspace";
    spec.workspace_dir = "/srv/a:b/workspace";
    spec.env = {{"LANG", "C.UTF-8"}, {"EMPTY", ""}};
    return spec;
}

container_place place() {
    container_place made;
    made.service_uuid = "uuid";
    made.slot = "slot-1";
    made.name = "sandboxd-x";
    made.agent_volume = "sandboxd-agent-1";
    made.agent_mount = "/.sandboxd";
    made.agent_argv = {"/.sandboxd/sandboxd-agent"};
    return made;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_sandboxs_container_is_said_exactly) {
    BOOST_TEST(
        create_body(container_for(full_sandbox(), place())) ==
        R"({"Image":"python:3.12-slim","Entrypoint":["/.sandboxd/sandboxd-agent"],"Cmd":[],)"
        R"("Env":["LANG=C.UTF-8","EMPTY="],"WorkingDir":"/workspace",)"
        R"("Labels":{"sandboxd.service":"uuid","sandboxd.slot":"slot-1"},"Tty":false,"OpenStdin":true,)"
        R"("StdinOnce":false,"Healthcheck":{"Test":["NONE"]},"HostConfig":{"AutoRemove":false,)"
        R"("Memory":536870912,"MemorySwap":536870912,"NanoCpus":1500000000,"CpuShares":512,"PidsLimit":512,)"
        R"("NetworkMode":"none","Runtime":"runsc","Init":false,"OomScoreAdj":-100,"Tmpfs":{"/tmp":"size=64m,exec"},"Mounts":[)"
        R"({"Type":"bind","Source":"/srv/a:b/workspace","Target":"/workspace","ReadOnly":false},)"
        R"({"Type":"volume","Source":"sandboxd-agent-1","Target":"/.sandboxd","ReadOnly":true}],)"
        R"("SecurityOpt":["no-new-privileges:true"],"Ulimits":[{"Name":"nofile","Soft":1024,"Hard":65536}],)"
        R"("LogConfig":{"Type":"none"}}})");
}

BOOST_AUTO_TEST_CASE(a_workspace_that_the_daemon_does_not_have_is_made_by_it) {
    auto spec = full_sandbox();
    spec.workspace_dir = "/srv/a/workspace";
    const auto host = json_object(create_body(container_for(spec, place())))->at("HostConfig").as_object();
    BOOST_TEST(boost::json::serialize(host.at("Binds")) == R"(["/srv/a/workspace:/workspace"])");
    BOOST_TEST(boost::json::serialize(host.at("Mounts")) ==
               R"([{"Type":"volume","Source":"sandboxd-agent-1","Target":"/.sandboxd","ReadOnly":true}])");
    json::object answer{{"Id", "abc"}, {"Name", "/n"}, {"HostConfig", host}};
    BOOST_TEST(differences(container_for(spec, place()), read_container(answer)).empty());
    answer["HostConfig"].as_object().erase("Binds");
    BOOST_TEST(differences(container_for(spec, place()), read_container(answer)).size() == 1U);
}

BOOST_AUTO_TEST_CASE(what_is_not_limited_is_not_said) {
    sandbox_spec spec;
    spec.image = "x";
    spec.uid = 1000;
    spec.limits.memory_swap_bytes = 5;
    spec.limits.tmpfs_size = "";
    const auto made = container_for(spec, place());
    BOOST_TEST(made.user == "1000:1000");
    BOOST_TEST(!made.memory.has_value());
    BOOST_TEST(!made.memory_swap.has_value()); // not without a memory limit
    BOOST_TEST(!made.network_mode.has_value());
    BOOST_TEST(made.tmpfs.empty());
    BOOST_TEST(made.mounts.size() == 1U);
    spec.limits.tmpfs_size = "64m,exec";
    BOOST_TEST(container_for(spec, place()).tmpfs.front().second == "size=64m,exec");
}

BOOST_AUTO_TEST_CASE(inspect_shows_what_the_daemon_dropped) {
    const auto wanted = container_for(full_sandbox(), place());
    auto host = json_object(create_body(wanted))->at("HostConfig").as_object();
    json::object answer{{"Id", "abc"}, {"Name", "/n"}, {"HostConfig", host}};
    BOOST_TEST(differences(wanted, read_container(answer)).empty());
    host["PidsLimit"] = nullptr;
    host["MemorySwap"] = -1;
    host.erase("SecurityOpt");
    answer["HostConfig"] = host;
    const auto found = differences(wanted, read_container(answer));
    BOOST_TEST_REQUIRE(found.size() == 3U);
    BOOST_TEST(found[0] == "the daemon did not take over MemorySwap=536870912 (it has -1)");
    BOOST_TEST(found[1] == "the daemon did not take over PidsLimit=512 (it has nothing)");
    BOOST_TEST(found[2] ==
               "the daemon did not take over SecurityOpt=no-new-privileges:true (it has not that)");
}

BOOST_AUTO_TEST_CASE(a_containers_state_is_read) {
    const auto found = read_container(*json_object(R"({"Id":"abc","Name":"/n","State":{"Status":"exited",
        "Running":false,"OOMKilled":true,"Pid":0,"ExitCode":137},"Config":{"Labels":{"a":"b"}},"ExecIDs":null})"));
    BOOST_TEST(found.name == "n");
    BOOST_TEST(found.status == "exited");
    BOOST_TEST(found.oom_killed);
    BOOST_TEST(found.exit_code.value() == 137);
    BOOST_TEST(found.labels.front().second == "b");
    BOOST_TEST(!read_container(json::object()).exit_code.has_value());
}
