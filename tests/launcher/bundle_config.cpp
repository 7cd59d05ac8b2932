#include "launcher/bundle_config.hpp"

#include "launcher/seccomp.hpp"

#include <boost/json.hpp>
#include <boost/test/unit_test.hpp>

#include <cerrno>
#include <set>

using namespace sandboxd;
using namespace sandboxd::launcher;
namespace json = boost::json;

namespace {

bundle_config sample() {
    bundle_config c;
    c.rootfs = "/run/x/root";
    c.argv = {agent_inside, "serve"};
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

std::set<std::string> names_of(const json::object& profile, std::string_view action) {
    std::set<std::string> names;
    for (const auto& rule : profile.at("syscalls").as_array()) {
        if (rule.at("action").as_string() == json::string_view(action.data(), action.size()) &&
            !rule.as_object().contains("args")) {
            for (const auto& name : rule.at("names").as_array()) {
                names.insert(name.as_string().c_str());
            }
        }
    }
    return names;
}

} // namespace

BOOST_AUTO_TEST_SUITE(launcher_bundle_config)

BOOST_AUTO_TEST_CASE(the_process) {
    const auto config = made(sample());
    const auto& process = config.at("process").as_object();
    BOOST_TEST(json::serialize(process.at("args")) == R"(["/dev/.sandboxd-agent","serve"])");
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

BOOST_AUTO_TEST_CASE(the_system_call_filter) {
    const auto profile = seccomp_profile();
    BOOST_TEST(profile.at("defaultAction").as_string() == "SCMP_ACT_ERRNO");
    BOOST_TEST(profile.at("defaultErrnoRet").as_int64() == EPERM);
    const auto allowed = names_of(profile, "SCMP_ACT_ALLOW");
    for (const char* name : {"read",       "write", "openat",     "openat2",    "execve",      "mmap",
                             "futex",      "wait4", "prctl",      "ptrace",     "chroot",      "mknod",
                             "fork",       "vfork", "epoll_wait", "pidfd_open", "close_range", "statx",
                             "socketpair", "rseq",  "getrandom",  "seccomp",    "faccessat2",  "kill"}) {
        BOOST_TEST(allowed.contains(name), name);
    }
    // Only behind a condition or not at all.
    for (const char* name : {"mount",
                             "umount2",
                             "pivot_root",
                             "unshare",
                             "setns",
                             "clone",
                             "clone3",
                             "bpf",
                             "perf_event_open",
                             "keyctl",
                             "add_key",
                             "request_key",
                             "init_module",
                             "finit_module",
                             "delete_module",
                             "kexec_load",
                             "reboot",
                             "swapon",
                             "settimeofday",
                             "clock_settime",
                             "open_by_handle_at",
                             "userfaultfd",
                             "io_uring_setup",
                             "move_mount",
                             "open_tree",
                             "mount_setattr",
                             "fsopen",
                             "personality",
                             "socket",
                             "syslog",
                             "acct",
                             "iopl",
                             "ioperm",
                             "name_to_handle_at",
                             "quotactl",
                             "kcmp",
                             "pidfd_getfd",
                             "sethostname",
                             "vhangup"}) {
        BOOST_TEST(!allowed.contains(name), name);
    }
    std::size_t listed = 0;
    std::string conditions;
    for (const auto& rule : profile.at("syscalls").as_array()) {
        if (rule.as_object().contains("args") || rule.as_object().contains("errnoRet")) {
            conditions += json::serialize(rule) + "\n";
        } else {
            listed += rule.at("names").as_array().size();
        }
    }
    BOOST_TEST(listed == allowed.size()); // no name twice
    BOOST_TEST(conditions.find(
                   R"({"names":["clone"],"action":"SCMP_ACT_ALLOW","args":[{"index":0,"value":2114060288,)"
                   R"("valueTwo":0,"op":"SCMP_CMP_MASKED_EQ"}]})") != std::string::npos);
    BOOST_TEST(conditions.find(R"({"names":["clone3"],"action":"SCMP_ACT_ERRNO","errnoRet":38})") !=
               std::string::npos);
    BOOST_TEST(
        conditions.find(R"({"names":["socket"],"action":"SCMP_ACT_ALLOW","args":[{"index":0,"value":40,)"
                        R"("valueTwo":0,"op":"SCMP_CMP_NE"}]})") != std::string::npos);
    BOOST_TEST(conditions.find(
                   R"("personality"],"action":"SCMP_ACT_ALLOW","args":[{"index":0,"value":4294967295)") !=
               std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
