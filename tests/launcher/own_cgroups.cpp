// Cgroups that the launcher makes itself, against made-up trees; real ones: tests/service/test_runtimes.py.

#include "launcher/blocking/own_cgroups.hpp"
#include "support/scratch.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>

using namespace sandboxd;
using namespace sandboxd::launcher;
using blocking::made_cgroups;
namespace fs = std::filesystem;

namespace {

const std::string path = "/sandboxd/abc/slot";

struct tree {
    tree() {
        layout.unified = root + "/unified";
        limits.memory_bytes = 64 << 20;
        limits.memory_swap_bytes = 96 << 20;
        limits.cpus = 0.5;
        limits.cpu_shares = 512;
        limits.pids = 20;
    }

    /// The directory of the sandbox as the kernel would fill it.
    void provide(const std::string& hierarchy, const std::vector<std::string>& files) {
        const auto directory = root + "/" + hierarchy + path;
        fs::create_directories(directory);
        std::ofstream(directory + "/cgroup.procs") << "";
        for (const auto& file : files) {
            std::ofstream(directory + "/" + file) << "";
        }
    }
    std::string text(const std::string& file) const {
        std::ifstream in(root + "/" + file);
        return {std::istreambuf_iterator<char>(in), {}};
    }
    void version_1() {
        provide("memory", {"memory.limit_in_bytes", "memory.memsw.limit_in_bytes"});
        provide("cpu", {"cpu.cfs_period_us", "cpu.cfs_quota_us", "cpu.shares"});
        provide("pids", {"pids.max"});
        provide("devices", {"devices.deny", "devices.allow"});
        for (const char* one : {"memory", "cpu", "pids", "devices"}) {
            layout.controllers[one] = root + "/" + one;
        }
    }

    test::scratch own;
    std::string root = own.path;
    cgroup_layout layout;
    sandbox_limits limits;
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(launcher_own_cgroups, tree)

BOOST_AUTO_TEST_CASE(none_asked_for_none_made) {
    version_1();
    const auto made = made_cgroups::make(layout, path, own_cgroups::none, limits);
    BOOST_REQUIRE(made.has_value());
    BOOST_TEST(made->enter());
    BOOST_TEST(made->settle().has_value());
    BOOST_TEST(text("memory" + path + "/memory.limit_in_bytes") == "");
    BOOST_TEST(text("memory" + path + "/cgroup.procs") == "");
}

BOOST_AUTO_TEST_CASE(limits_of_version_1) {
    version_1();
    const auto made = made_cgroups::make(layout, path, own_cgroups::version_1, limits);
    BOOST_REQUIRE_MESSAGE(made.has_value(), (made ? "" : made.error().message));
    BOOST_TEST(text("memory" + path + "/memory.limit_in_bytes") == "67108864");
    BOOST_TEST(text("memory" + path + "/memory.memsw.limit_in_bytes") == "100663296");
    BOOST_TEST(text("cpu" + path + "/cpu.cfs_period_us") == "100000");
    BOOST_TEST(text("cpu" + path + "/cpu.cfs_quota_us") == "50000");
    BOOST_TEST(text("cpu" + path + "/cpu.shares") == "512");
    BOOST_TEST(text("devices" + path + "/devices.deny") == "a");
    BOOST_TEST(text("devices" + path + "/devices.allow") == "c 136:* rwm");
    BOOST_TEST(text("pids" + path + "/pids.max") == "52"); // room for the runtime
    BOOST_TEST(made->settle().has_value());
    BOOST_TEST(text("pids" + path + "/pids.max") == "20");
    BOOST_TEST(made->enter());
    for (const char* one : {"memory", "cpu", "pids", "devices"}) {
        BOOST_TEST(text(one + path + "/cgroup.procs") == "0");
    }
    BOOST_TEST(!fs::exists(root + "/unified"));
}

BOOST_AUTO_TEST_CASE(every_hierarchy_there_is) {
    version_1();
    provide("unified", {});
    const auto made = made_cgroups::make(layout, path, own_cgroups::every, {});
    BOOST_REQUIRE_MESSAGE(made.has_value(), (made ? "" : made.error().message));
    BOOST_TEST(made->enter());
    BOOST_TEST(text("unified" + path + "/cgroup.procs") == "0");
    BOOST_TEST(text("memory" + path + "/memory.limit_in_bytes") == "");
    BOOST_TEST(text("pids" + path + "/pids.max") == "");
}

BOOST_AUTO_TEST_CASE(limits_of_version_2) {
    provide("unified", {"memory.max", "memory.swap.max", "cpu.max", "cpu.weight", "pids.max"});
    for (const char* parent : {"", "/sandboxd", "/sandboxd/abc"}) {
        std::ofstream(root + "/unified" + parent + "/cgroup.subtree_control") << "";
    }
    const auto made = made_cgroups::make(layout, path, own_cgroups::every, limits);
    BOOST_REQUIRE_MESSAGE(made.has_value(), (made ? "" : made.error().message));
    const auto own = "unified" + path;
    BOOST_TEST(text(own + "/memory.max") == "67108864");
    BOOST_TEST(text(own + "/memory.swap.max") == "33554432");
    BOOST_TEST(text(own + "/cpu.max") == "50000 100000");
    BOOST_TEST(text(own + "/cpu.weight") == "20");
    BOOST_TEST(text(own + "/pids.max") == "52");
    BOOST_TEST(made->settle().has_value());
    BOOST_TEST(text(own + "/pids.max").substr(0, 2) == "20");
    for (const char* parent : {"", "/sandboxd", "/sandboxd/abc"}) {
        BOOST_TEST(text(std::string("unified") + parent + "/cgroup.subtree_control").substr(0, 5) == "+pids");
    }
}

BOOST_AUTO_TEST_CASE(a_limit_without_its_controller_is_left_out) {
    provide("unified", {});
    const auto made = made_cgroups::make(layout, path, own_cgroups::every, limits);
    BOOST_REQUIRE_MESSAGE(made.has_value(), (made ? "" : made.error().message));
    BOOST_TEST(made->settle().has_value());
    BOOST_TEST(!fs::exists(root + "/unified" + path + "/memory.max"));
    BOOST_TEST(!fs::exists(root + "/unified" + path + "/pids.max"));
}

BOOST_AUTO_TEST_CASE(a_limit_that_can_not_be_set_is_an_error_that_names_it) {
    version_1();
    fs::remove(root + "/cpu" + path + "/cpu.cfs_quota_us");
    const auto made = made_cgroups::make(layout, path, own_cgroups::version_1, limits);
    BOOST_REQUIRE(!made.has_value());
    BOOST_TEST((made.error().code == errc::start_failed));
    BOOST_TEST(made.error().message.find("/cpu.cfs_quota_us: No such file") != std::string::npos,
               made.error().message);
}

BOOST_AUTO_TEST_SUITE_END()
