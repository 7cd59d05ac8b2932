#include "launcher/cgroups.hpp"
#include "support/scratch.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>

using namespace sandboxd;
using namespace sandboxd::launcher;
using namespace std::chrono_literals;

namespace {

struct tree_fixture {
    void write(const std::string& path, const std::string& text) const {
        const std::filesystem::path file(root + path);
        std::filesystem::create_directories(file.parent_path());
        std::ofstream(file) << text;
    }
    test::scratch own;
    std::string root = own.path;
};

constexpr auto version_1 =
    "22 27 0:21 / /proc rw - proc proc rw\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:5 - cgroup cgroup rw,cpu,cpuacct\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "39 31 0:36 / /sys/fs/cgroup/my\\040pids rw - cgroup cgroup rw,pids\n"
    "40 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
    "broken line\n";

constexpr std::string_view path = "/sandboxd/abc/slot";

} // namespace

BOOST_FIXTURE_TEST_SUITE(launcher_cgroups, tree_fixture)

BOOST_AUTO_TEST_CASE(hierarchies_of_a_hybrid_host) {
    const auto layout = parse_cgroup_layout(version_1);
    BOOST_TEST(!layout.is_unified());
    BOOST_TEST(layout.directory("memory", "/x") == "/sys/fs/cgroup/memory/x");
    BOOST_TEST(layout.directory("cpuacct", "/x") == "/sys/fs/cgroup/cpu,cpuacct/x");
    BOOST_TEST(layout.directory("pids", "/x") == "/sys/fs/cgroup/my pids/x");
    BOOST_TEST(layout.directory("hugetlb", "/x") == "");
    BOOST_TEST((layout.directories("/x") ==
                std::vector<std::string>{"/sys/fs/cgroup/cpu,cpuacct/x", "/sys/fs/cgroup/memory/x",
                                         "/sys/fs/cgroup/my pids/x", "/sys/fs/cgroup/systemd/x",
                                         "/sys/fs/cgroup/unified/x"}));
}

BOOST_AUTO_TEST_CASE(version_2_alone_and_beside_a_named_hierarchy) {
    const auto alone = parse_cgroup_layout("30 23 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n");
    BOOST_TEST(alone.is_unified());
    BOOST_TEST(alone.directory("memory", "/x") == "/sys/fs/cgroup/x");
    const auto beside =
        parse_cgroup_layout("30 23 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
                            "31 23 0:27 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n");
    BOOST_TEST(beside.is_unified());
    const auto nothing = parse_cgroup_layout("");
    BOOST_TEST(!nothing.is_unified());
    BOOST_TEST(nothing.directories("/x").empty());
}

BOOST_AUTO_TEST_CASE(where_a_process_is) {
    const auto hybrid = parse_cgroup_layout(version_1);
    BOOST_TEST(own_cgroup_directory(hybrid, "9:pids:/a\n4:cpu,cpuacct:/b\n1:name=systemd:/c\n0::/d:e\n") ==
               "/sys/fs/cgroup/unified/d:e");
    auto old = hybrid;
    old.unified.clear();
    BOOST_TEST(own_cgroup_directory(old, "broken\n7:rdma:/x\n4:cpu,cpuacct:/b\n9:pids:/a\n0::/d\n") ==
               "/sys/fs/cgroup/cpu,cpuacct/b");
    cgroup_layout unified;
    unified.unified = "/sys/fs/cgroup";
    BOOST_TEST(own_cgroup_directory(unified, "1:name=systemd:/c\n0::/\n") == "/sys/fs/cgroup/");
    BOOST_TEST(own_cgroup_directory(unified, "").empty());
    BOOST_TEST(own_cgroup_directory({}, "9:pids:/a\n0::/d\n").empty());
}

BOOST_AUTO_TEST_CASE(the_path_of_a_slot) {
    BOOST_TEST(cgroup_path("12345678-9abc-def0", "slot") == "/sandboxd/12345678/slot");
    BOOST_TEST(cgroup_path("12345678-9abc-def0") == "/sandboxd/12345678");
}

BOOST_AUTO_TEST_CASE(usage_of_version_1) {
    cgroup_layout layout;
    layout.controllers = {
        {"memory", root + "/memory"}, {"pids", root + "/pids"}, {"cpuacct", root + "/cpuacct"}};
    const std::string slot(path);
    write("/memory" + slot + "/memory.usage_in_bytes", "1048576\n");
    write("/memory" + slot + "/memory.limit_in_bytes", "33554432\n");
    write("/memory" + slot + "/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n");
    write("/pids" + slot + "/pids.current", "7\n");
    write("/cpuacct" + slot + "/cpuacct.usage", "1000000000\n");
    cgroup_reader reader(layout, path);
    BOOST_TEST(*reader.oom_kills() == 3U);
    write("/memory" + slot + "/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 4\n");
    BOOST_TEST(*reader.oom_kills() == 4U); // read anew each time
    const std::chrono::steady_clock::time_point begin(100s);
    const auto first = reader.sample(begin);
    BOOST_REQUIRE(first.has_value());
    BOOST_TEST(*first->memory_bytes == 1048576U);
    BOOST_TEST(*first->memory_limit_bytes == 33554432U);
    BOOST_TEST(*first->pids == 7U);
    BOOST_TEST(!first->cpu_percent.has_value());
    write("/cpuacct" + slot + "/cpuacct.usage", "2500000000\n");
    const auto second = reader.sample(begin + 1s);
    BOOST_TEST(*second->cpu_percent == 150.0);
    BOOST_TEST(!reader.sample(begin + 1s)->cpu_percent.has_value()); // no time has passed
    write("/cpuacct" + slot + "/cpuacct.usage", "1\n");
    BOOST_TEST(!reader.sample(begin + 2s)->cpu_percent.has_value()); // the counter went back
}

BOOST_AUTO_TEST_CASE(usage_of_version_2) {
    cgroup_layout layout;
    layout.unified = root;
    const std::string slot(path);
    write(slot + "/memory.current", "2097152\n");
    write(slot + "/memory.max", "67108864\n");
    write(slot + "/memory.events", "low 0\nhigh 0\nmax 9\noom 2\noom_kill 1\noom_group_kill 0\n");
    write(slot + "/pids.current", "2\n");
    write(slot + "/cpu.stat", "usage_usec 500000\nuser_usec 1\nsystem_usec 1\n");
    cgroup_reader reader(layout, path);
    BOOST_TEST(*reader.oom_kills() == 1U);
    const std::chrono::steady_clock::time_point begin(5s);
    const auto first = reader.sample(begin);
    BOOST_REQUIRE(first.has_value());
    BOOST_TEST(*first->memory_bytes == 2097152U);
    BOOST_TEST(*first->memory_limit_bytes == 67108864U);
    BOOST_TEST(*first->pids == 2U);
    write(slot + "/cpu.stat", "usage_usec 750000\n");
    BOOST_TEST(*reader.sample(begin + 1s)->cpu_percent == 25.0);
    write(slot + "/memory.max", "max\n");
    BOOST_TEST(*reader.sample(begin + 2s)->memory_limit_bytes > 67108864U); // the host's
}

BOOST_AUTO_TEST_CASE(missing_and_odd_values_are_none) {
    cgroup_layout layout;
    layout.controllers = {{"memory", root + "/memory"}, {"pids", root + "/pids"}};
    cgroup_reader gone(layout, path);
    BOOST_TEST(!gone.sample({}).has_value());
    BOOST_TEST(!gone.oom_kills().has_value());
    const std::string slot(path);
    write("/memory" + slot + "/memory.usage_in_bytes", "lots\n");
    write("/memory" + slot + "/memory.oom_control", "oom_kill_disable 0\n");
    write("/pids" + slot + "/pids.current", "5\n");
    cgroup_reader odd(layout, path);
    const auto sample = odd.sample({});
    BOOST_REQUIRE(sample.has_value());
    BOOST_TEST(!sample->memory_bytes.has_value());
    BOOST_TEST(*sample->pids == 5U);
    BOOST_TEST(!odd.oom_kills().has_value());
}

BOOST_AUTO_TEST_SUITE_END()
