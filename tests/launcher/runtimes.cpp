#include "launcher/runtimes/runtime.hpp"

#include <boost/json.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <set>

using namespace sandboxd;
using namespace sandboxd::launcher;
namespace json = boost::json;

namespace {

using words = std::vector<std::string>;

const runtime_call call{"/state/x", "/run/mnt", "/run/mnt/pid", "/run/mnt/log", "abc"};

cgroup_layout hybrid() {
    cgroup_layout layout;
    layout.controllers = {{"memory", "/sys/fs/cgroup/memory"}, {"pids", "/sys/fs/cgroup/pids"}};
    layout.unified = "/sys/fs/cgroup/unified";
    return layout;
}

cgroup_layout version_2() {
    cgroup_layout layout;
    layout.unified = "/sys/fs/cgroup";
    return layout;
}

cgroup_layout version_1() {
    auto layout = hybrid();
    layout.unified.clear();
    return layout;
}

bundle_config sample() {
    bundle_config c;
    c.rootfs = "/run/mnt/root";
    c.work_dir = "/workspace";
    c.hostname = "box";
    c.uid_base = 0x20000000;
    c.cgroups_path = "/sandboxd/abc/slot";
    c.limits.memory_bytes = 256 << 20;
    c.limits.cpus = 1.5;
    c.limits.pids = 100;
    c.limits.tmpfs_size = "64m";
    return c;
}

json::object bundle_for(const oci_runtime& runtime, const cgroup_layout& layout, bundle_config from) {
    runtime.adapt(from, {layout});
    return json::parse(runtime_config(from)).as_object();
}

std::set<std::string> namespaces_of(const json::object& config) {
    std::set<std::string> types;
    for (const auto& one : config.at("linux").at("namespaces").as_array()) {
        types.insert(one.at("type").as_string().c_str());
    }
    return types;
}

std::set<std::string> mounts_of(const json::object& config) {
    std::set<std::string> where;
    for (const auto& one : config.at("mounts").as_array()) {
        where.insert(one.at("destination").as_string().c_str());
    }
    return where;
}

bool asks_for_filter(const json::object& config) {
    const auto& args = config.at("process").at("args").as_array();
    return std::find(args.begin(), args.end(), json::value("--filter")) != args.end();
}

} // namespace

BOOST_AUTO_TEST_SUITE(launcher_runtimes)

BOOST_AUTO_TEST_CASE(they_are_found_by_their_names_only) {
    BOOST_TEST(runtime_names() == "runc, crun, runsc");
    BOOST_TEST(find_runtime("runc") == &runc_runtime());
    BOOST_TEST(find_runtime("crun") == &crun_runtime());
    BOOST_TEST(find_runtime("runsc") == &runsc_runtime());
    for (const char* name : {"", "kata", "runc ", "../runc", "RUNC"}) {
        BOOST_TEST(find_runtime(name) == nullptr);
    }
}

BOOST_AUTO_TEST_CASE(arguments) {
    BOOST_TEST((runc_runtime().arguments(call) == words{"--log", "/run/mnt/log", "--root", "/state/x", "run",
                                                        "--detach", "--preserve-fds", "1", "--pid-file",
                                                        "/run/mnt/pid", "--bundle", "/run/mnt", "abc"}));
    BOOST_TEST((crun_runtime().arguments(call) == words{"--log", "/run/mnt/log", "--root", "/state/x",
                                                        "--cgroup-manager", "cgroupfs", "run", "--detach",
                                                        "--preserve-fds", "1", "--pid-file", "/run/mnt/pid",
                                                        "--bundle", "/run/mnt", "abc"}));
    BOOST_TEST((runsc_runtime().arguments(call) ==
                words{"-network=none", "-platform=ptrace", "-ignore-cgroups", "-host-uds=open", "-root",
                      "/state/x", "-log", "/run/mnt/log", "-log-format", "json", "run", "-detach",
                      "-pid-file", "/run/mnt/pid", "-bundle", "/run/mnt", "abc"}));
}

BOOST_AUTO_TEST_CASE(how_the_agent_is_met) {
    BOOST_TEST((runc_runtime().door() == agent_door::handed_in));
    BOOST_TEST((crun_runtime().door() == agent_door::handed_in));
    BOOST_TEST((runsc_runtime().door() == agent_door::dialled));
    BOOST_TEST(runc_runtime().may_hold_lock());
    BOOST_TEST(crun_runtime().may_hold_lock());
    BOOST_TEST(!runsc_runtime().may_hold_lock());
}

BOOST_AUTO_TEST_CASE(runc_gets_the_bundle_as_it_is) {
    auto from = sample();
    const auto before = runtime_config(from);
    for (const auto& layout : {hybrid(), version_1(), version_2()}) {
        runc_runtime().adapt(from, {layout});
        BOOST_TEST(runtime_config(from) == before);
        BOOST_TEST((runc_runtime().makes_cgroups({layout}) == own_cgroups::none));
        BOOST_TEST(!runc_runtime().wants_plain_cgroup2({layout}));
    }
}

BOOST_AUTO_TEST_CASE(crun_where_both_versions_of_cgroups_are_mounted) {
    const auto& crun = crun_runtime();
    const auto layout = hybrid();
    const auto config = bundle_for(crun, layout, sample());
    BOOST_TEST(json::serialize(config.at("linux").at("resources")) == "{}");
    BOOST_TEST(config.at("linux").at("cgroupsPath").as_string() == "/sandboxd/abc/slot");
    BOOST_TEST(asks_for_filter(config));
    BOOST_TEST(mounts_of(config).contains("/tmp"));
    BOOST_TEST((namespaces_of(config) ==
                std::set<std::string>{"user", "pid", "mount", "network", "ipc", "uts", "cgroup"}));
    BOOST_TEST((crun.makes_cgroups({layout}) == own_cgroups::version_1));
    BOOST_TEST(crun.wants_plain_cgroup2({layout}));
    BOOST_TEST(*crun.own_limits(sample().limits).pids == 100U);
    BOOST_TEST(*crun.own_limits(sample().limits).memory_bytes == 268435456U);
    BOOST_TEST(crun.notes({layout}).empty());
}

BOOST_AUTO_TEST_CASE(crun_alone_with_one_version_of_cgroups) {
    const auto& crun = crun_runtime();
    for (const auto& layout : {version_1(), version_2()}) {
        const auto config = bundle_for(crun, layout, sample());
        BOOST_TEST(json::serialize(config.at("linux").at("resources")) ==
                   R"({"devices":[{"allow":false,"access":"rwm"}],)"
                   R"("memory":{"limit":268435456,"swap":268435456},)"
                   R"("cpu":{"period":100000,"quota":150000},"pids":{"limit":100}})");
        BOOST_TEST((crun.makes_cgroups({layout}) == own_cgroups::none));
        BOOST_TEST(!crun.wants_plain_cgroup2({layout}));
    }
    // All controllers in version 2, which is not where crun looks for it.
    auto elsewhere = version_2();
    elsewhere.unified = "/sys/fs/cgroup/unified";
    BOOST_TEST((crun.makes_cgroups({elsewhere}) == own_cgroups::none));
    BOOST_TEST(crun.wants_plain_cgroup2({elsewhere}));
}

BOOST_AUTO_TEST_CASE(runsc_gets_neither_ids_nor_cgroups_nor_filter) {
    const auto& runsc = runsc_runtime();
    auto from = sample();
    from.door_source = "/run/mnt/door";
    for (const auto& layout : {hybrid(), version_1(), version_2()}) {
        const auto config = bundle_for(runsc, layout, from);
        BOOST_TEST((namespaces_of(config) == std::set<std::string>{"pid", "mount", "network", "ipc", "uts"}));
        for (const char* name : {"uidMappings", "gidMappings", "cgroupsPath", "resources"}) {
            BOOST_TEST(!config.at("linux").as_object().contains(name));
        }
        BOOST_TEST(!asks_for_filter(config));
        const auto where = mounts_of(config);
        BOOST_TEST(!where.contains("/dev/mqueue"));
        BOOST_TEST(!where.contains("/sys/fs/cgroup"));
        BOOST_TEST(!where.contains(agent_inside));
        BOOST_TEST(where.contains("/tmp"));
        BOOST_TEST(!config.at("process").as_object().contains("oomScoreAdj"));
        const auto& last = config.at("mounts").as_array().back();
        BOOST_TEST(json::serialize(last) ==
                   R"({"destination":"/dev/.sandboxd","type":"bind","source":"/run/mnt/door",)"
                   R"("options":["rbind","ro","nosuid","nodev"]})");
        BOOST_TEST((runsc.makes_cgroups({layout}) == own_cgroups::every));
        BOOST_TEST(runsc.notes({layout}).size() == 3U);
    }
    BOOST_TEST(!runsc.shifts_ids());
    BOOST_TEST(*runsc.own_limits(from.limits).pids == 456U);
    BOOST_TEST(*runsc.own_limits(from.limits).memory_bytes == 268435456U);
    BOOST_TEST(!runsc.own_limits({}).pids.has_value());
}

BOOST_AUTO_TEST_CASE(their_complaints) {
    BOOST_TEST(runc_runtime().complaint("time=\"t\" level=warning msg=\"first\"\n"
                                        "time=\"t\" level=error msg=\"runc run failed: x\"\n") ==
               "runc run failed: x");
    BOOST_TEST(runc_runtime().complaint("no such dress\n") == "no such dress");
    BOOST_TEST(crun_runtime().complaint(
                   "2026-01-01T00:00:00.000001Z: one\n2026-01-01T00:00:00.000002Z: two\n") == "two");
    BOOST_TEST(crun_runtime().complaint("bare") == "bare");
    BOOST_TEST(runsc_runtime().complaint(R"({"msg":"one","level":"warning","time":"t"})"
                                         R"({"msg":"two \"quoted\"","level":"error","time":"t"})") ==
               "two \"quoted\"");
    BOOST_TEST(runsc_runtime().complaint(R"({"msg":"cut)") == R"({"msg":"cut)");
    for (const auto* runtime : all_runtimes()) {
        BOOST_TEST(runtime->complaint("") == "");
        BOOST_TEST(runtime->complaint("\n\n") == "");
    }
}

BOOST_AUTO_TEST_CASE(what_they_remember_of_a_sandbox) {
    BOOST_TEST((runc_runtime().records("abc") == words{"abc"}));
    BOOST_TEST((crun_runtime().records("abc") == words{"abc"}));
    BOOST_TEST((runsc_runtime().records("abc") == words{"abc_sandbox:abc.state", "abc_sandbox:abc.lock"}));
}

BOOST_AUTO_TEST_SUITE_END()
