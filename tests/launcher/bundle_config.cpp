#include "launcher/bundle_config.hpp"

#include <boost/json.hpp>
#include <boost/test/unit_test.hpp>

#include <set>

using namespace sandboxd;
using namespace sandboxd::launcher;
namespace json = boost::json;

namespace {

bundle_config sample() {
    bundle_config c;
    c.rootfs = "/run/x/root";
    c.agent = {agent_inside, "serve"};
    c.env = {{"PATH", "/bin"}, {"A", "b=c"}};
    c.work_dir = "/workspace";
    c.hostname = "box";
    c.agent_source = "/run/x/agent";
    c.workspace_source = "/run/x/workspace";
    c.uid_base = 0x20000000;
    c.cgroups_path = "/sandboxd/abc/slot";
    c.limits.memory_bytes = 256 << 20;
    c.limits.cpus = 1.5;
    c.limits.cpu_shares = 512;
    c.limits.pids = 100;
    c.limits.tmpfs_size = "64m";
    return c;
}

json::object made(const bundle_config& from) {
    return json::parse(runtime_config(from)).as_object();
}

json::value mount_at(const json::object& config, std::string_view where) {
    for (const auto& one : config.at("mounts").as_array()) {
        if (one.at("destination").as_string() == json::string_view(where.data(), where.size())) {
            return one;
        }
    }
    return nullptr;
}

} // namespace

BOOST_AUTO_TEST_SUITE(launcher_bundle_config)

BOOST_AUTO_TEST_CASE(the_process) {
    const auto config = made(sample());
    const auto& process = config.at("process").as_object();
    BOOST_TEST(json::serialize(process.at("args")) == R"(["/dev/.sandboxd-agent","serve","--filter"])");
    BOOST_TEST(json::serialize(process.at("env")) == R"(["PATH=/bin","A=b=c"])");
    BOOST_TEST(json::serialize(process.at("user")) == R"({"uid":0,"gid":0})");
    BOOST_TEST(process.at("cwd").as_string() == "/workspace");
    BOOST_TEST(process.at("terminal").as_bool() == false);
    BOOST_TEST(process.at("noNewPrivileges").as_bool() == true);
    BOOST_TEST(process.at("oomScoreAdj").as_int64() == -100);
    const std::string capabilities =
        R"(["CAP_AUDIT_WRITE","CAP_CHOWN","CAP_DAC_OVERRIDE","CAP_FOWNER","CAP_FSETID","CAP_KILL","CAP_MKNOD",)"
        R"("CAP_NET_BIND_SERVICE","CAP_NET_RAW","CAP_SETFCAP","CAP_SETGID","CAP_SETPCAP","CAP_SETUID","CAP_SYS_CHROOT"])";
    for (const char* set : {"bounding", "effective", "permitted"}) {
        BOOST_TEST(json::serialize(process.at("capabilities").at(set)) == capabilities);
    }
    BOOST_TEST(process.at("capabilities").as_object().size() == 3U);
    BOOST_TEST(
        json::serialize(process.at("rlimits")) ==
        R"([{"type":"RLIMIT_NOFILE","hard":65536,"soft":65536},{"type":"RLIMIT_CORE","hard":0,"soft":0}])");
    BOOST_TEST(config.at("hostname").as_string() == "box");
    BOOST_TEST(config.at("root").at("path").as_string() == "/run/x/root");
}

BOOST_AUTO_TEST_CASE(without_the_capability_the_score_is_left_alone) {
    auto from = sample();
    from.protect_agent = false;
    from.open_files = 1024;
    const auto config = made(from);
    BOOST_TEST(!config.at("process").as_object().contains("oomScoreAdj"));
    BOOST_TEST(config.at("process").at("rlimits").at(0).at("hard").as_int64() == 1024);
}

BOOST_AUTO_TEST_CASE(namespaces_and_ids) {
    const auto config = made(sample());
    const auto& part = config.at("linux").as_object();
    std::set<std::string> types;
    for (const auto& one : part.at("namespaces").as_array()) {
        types.insert(one.at("type").as_string().c_str());
        BOOST_TEST(!one.as_object().contains("path"));
    }
    BOOST_TEST((types == std::set<std::string>{"user", "pid", "mount", "network", "ipc", "uts", "cgroup"}));
    for (const char* map : {"uidMappings", "gidMappings"}) {
        BOOST_TEST(json::serialize(part.at(map)) == R"([{"containerID":0,"hostID":536870912,"size":65536}])");
    }
    BOOST_TEST(part.at("cgroupsPath").as_string() == "/sandboxd/abc/slot");
}

BOOST_AUTO_TEST_CASE(limits) {
    const auto config = made(sample());
    BOOST_TEST(json::serialize(config.at("linux").at("resources")) ==
               R"({"devices":[{"allow":false,"access":"rwm"}],"memory":{"limit":268435456,"swap":268435456},)"
               R"("cpu":{"period":100000,"quota":150000,"shares":512},"pids":{"limit":100}})");
    auto swap = sample();
    swap.limits.memory_swap_bytes = 512 << 20;
    BOOST_TEST(made(swap).at("linux").at("resources").at("memory").at("swap").as_int64() == 536870912);
    swap.limit_swap = false;
    BOOST_TEST(!made(swap).at("linux").at("resources").at("memory").as_object().contains("swap"));
    auto none = sample();
    none.limits = {};
    none.limits.memory_swap_bytes = 512 << 20; // contract 4.2: not set at all without a memory limit
    BOOST_TEST(json::serialize(made(none).at("linux").at("resources")) ==
               R"({"devices":[{"allow":false,"access":"rwm"}]})");
}

BOOST_AUTO_TEST_CASE(mounts) {
    const auto config = made(sample());
    BOOST_TEST(json::serialize(mount_at(config, "/workspace")) ==
               R"({"destination":"/workspace","type":"bind","source":"/run/x/workspace",)"
               R"("options":["bind","rw","nosuid","nodev"]})");
    BOOST_TEST(json::serialize(mount_at(config, agent_inside)) ==
               R"({"destination":"/dev/.sandboxd-agent","type":"bind","source":"/run/x/agent",)"
               R"("options":["bind","ro","nosuid","nodev"]})");
    BOOST_TEST(json::serialize(mount_at(config, "/tmp").at("options")) ==
               R"(["nosuid","nodev","mode=1777","size=64m","exec"])");
    BOOST_TEST(json::serialize(mount_at(config, "/sys").at("options")) ==
               R"(["nosuid","noexec","nodev","ro"])");
    for (const char* where : {"/proc", "/dev", "/dev/pts", "/dev/shm", "/dev/mqueue", "/sys/fs/cgroup"}) {
        BOOST_TEST(mount_at(config, where).is_object(), where);
    }
    auto bare = sample();
    bare.limits.tmpfs_size.reset();
    bare.workspace_source.reset();
    bare.cgroup_mount = false;
    const auto less = made(bare);
    for (const char* where : {"/tmp", "/workspace", "/sys/fs/cgroup"}) {
        BOOST_TEST(mount_at(less, where).is_null(), where);
    }
}

BOOST_AUTO_TEST_CASE(masked_and_read_only_paths) {
    const auto config = made(sample());
    const auto masked = json::serialize(config.at("linux").at("maskedPaths"));
    for (const char* path :
         {"/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/acpi", "/sys/firmware"}) {
        BOOST_TEST(masked.find(path) != std::string::npos, path);
    }
    BOOST_TEST(json::serialize(config.at("linux").at("readonlyPaths")) ==
               R"(["/proc/bus","/proc/fs","/proc/irq","/proc/sys","/proc/sysrq-trigger","/sys/fs/cgroup"])");
}

BOOST_AUTO_TEST_CASE(tmpfs_sizes) {
    const auto text = [](std::string_view size) {
        std::string joined;
        const auto options = tmpfs_options(size);
        BOOST_REQUIRE(options.has_value());
        for (const auto& one : *options) {
            joined += one + " ";
        }
        return joined;
    };
    BOOST_TEST(text("64m") == "nosuid nodev mode=1777 size=64m exec ");
    BOOST_TEST(text("1G,exec") == "nosuid nodev mode=1777 size=1G exec ");
    BOOST_TEST(text("50%,mode=0700") == "nosuid nodev mode=1777 size=50% mode=0700 exec ");
    for (const char* bad : {"64mb", "m", "-1", "1.5g", "64m,uid=0", "64m,mode=9", "64m,nonsense", "64m\n"}) {
        const auto options = tmpfs_options(bad);
        BOOST_TEST(!options.has_value(), bad);
    }
}

BOOST_AUTO_TEST_CASE(the_agent_is_told_to_load_the_filter) {
    auto from = sample();
    from.entrypoint = {"/entry", "sleep", "infinity"};
    BOOST_TEST(json::serialize(made(from).at("process").at("args")) ==
               R"(["/dev/.sandboxd-agent","serve","--filter","--entrypoint","/entry","sleep","infinity"])");
    BOOST_TEST(!made(from).at("linux").as_object().contains("seccomp"));
    from.filter = false; // a kernel that has none
    BOOST_TEST(json::serialize(made(from).at("process").at("args")) ==
               R"(["/dev/.sandboxd-agent","serve","--entrypoint","/entry","sleep","infinity"])");
}

BOOST_AUTO_TEST_SUITE_END()
