// The lock for moves between cgroups, against made-up trees and the host's own.

#include "launcher/blocking/cgroup_lock.hpp"

#include "launcher/blocking/files.hpp"
#include "support/scratch.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>

using namespace sandboxd::launcher;
using namespace std::chrono_literals;
using blocking::cgroup_lock;
namespace fs = std::filesystem;

namespace {

std::string own_cgroups() {
    return blocking::read_file("/proc/self/cgroup", 64 * 1024).value();
}

/// A hierarchy that this process is in, of plain files.
struct tree {
    tree() {
        layout.unified = own.path;
        for (const auto& [controller, mount] : read_cgroup_layout().controllers) {
            layout.controllers[controller] = own.path;
        }
        directory = own_cgroup_directory(layout, own_cgroups());
        BOOST_REQUIRE(!directory.empty());
        fs::create_directories(directory);
        std::ofstream(directory + "/cgroup.procs") << "";
    }

    std::uintmax_t moves() const { return fs::file_size(directory + "/cgroup.procs"); }

    sandboxd::test::scratch own;
    cgroup_layout layout;
    std::string directory;
};

bool comes(const std::function<bool()>& condition) {
    const auto until = std::chrono::steady_clock::now() + 60s;
    while (!condition()) {
        if (std::chrono::steady_clock::now() >= until) {
            return false;
        }
        std::this_thread::sleep_for(1ms);
    }
    return true;
}

} // namespace

BOOST_AUTO_TEST_SUITE(launcher_cgroup_lock)

BOOST_FIXTURE_TEST_CASE(moves_to_where_it_is_until_released, tree) {
    cgroup_lock held(layout);
    BOOST_TEST(comes([&] { return moves() >= 3; }));
    held.release();
    held.release();
    const auto made = moves();
    std::ifstream in(directory + "/cgroup.procs");
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    BOOST_TEST(text == std::string(made, '0')); // of this process, whichever it is
    BOOST_TEST(moves() == made);
}

BOOST_FIXTURE_TEST_CASE(one_moves_and_the_next_takes_over, tree) {
    cgroup_lock first(layout);
    BOOST_TEST(comes([&] { return moves() >= 1; }));
    const cgroup_lock second(layout);
    first.release();
    const auto made = moves();
    BOOST_TEST(comes([&] { return moves() > made; }));
}

BOOST_AUTO_TEST_CASE(changes_nothing) {
    const auto before = own_cgroups();
    cgroup_lock held(read_cgroup_layout());
    held.release();
    BOOST_TEST(own_cgroups() == before);
}

BOOST_FIXTURE_TEST_CASE(does_without, tree) {
    fs::remove(directory + "/cgroup.procs");
    cgroup_lock missing(layout);
    missing.release();
    BOOST_TEST(!fs::exists(directory + "/cgroup.procs"));
    cgroup_lock nowhere{cgroup_layout()};
    nowhere.release();
}

BOOST_AUTO_TEST_SUITE_END()
