#include "fixture.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>

#include <atomic>
#include <fcntl.h>
#include <thread>
#include <unistd.h>

namespace hostfs_tests {

namespace data = boost::unit_test::data;

BOOST_FIXTURE_TEST_SUITE(hostfs_remove, workspace_fixture)

BOOST_DATA_TEST_CASE(a_tree_goes_and_its_links_targets_stay, data::make(both_walks), how) {
    const auto in = open(how);
    fs::create_directories(work("t/a/b"));
    fs::create_directories(work("t/\xff/ x"));
    put(work("t/a/b/f"), "x");
    fs::create_directory_symlink(host(), work("t/a/link"));
    fs::create_symlink(host() + "/secret", work("t/a/b/link"));
    BOOST_REQUIRE(::mkfifo(work("t/a/fifo").c_str(), 0600) == 0);
    put(work("kept"), "y");
    BOOST_TEST(why(blocking::remove(in, path("/workspace/t/"), soon())) == "done");
    BOOST_TEST(!fs::exists(work("t")));
    BOOST_TEST(get(work("kept")) == "y");
    BOOST_TEST(get(host() + "/secret") == "host");
}

BOOST_DATA_TEST_CASE(a_directory_of_many_entries, data::make(both_walks), how) {
    const auto in = open(how);
    fs::create_directories(work("t/d"));
    for (int i = 0; i < 3000; ++i) {
        put(work("t/file-with-a-name-of-some-length-" + std::to_string(i)), "");
        if (i % 10 == 0) {
            fs::create_directories(work("t/d/" + std::to_string(i) + "/e"));
        }
    }
    BOOST_TEST(why(blocking::remove(in, path("/workspace/t"), soon())) == "done");
    BOOST_TEST(fs::is_empty(work()));
}

BOOST_AUTO_TEST_CASE(a_tree_far_deeper_than_a_path_can_name) {
    const auto in = open(walk_kind::kernel);
    fs::create_directory(work("t"));
    core::unique_fd at(::open(work("t").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    for (int depth = 0; depth < 3000; ++depth) {
        BOOST_REQUIRE(::mkdirat(at.get(), "d", 0755) == 0);
        at.reset(::openat(at.get(), "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        BOOST_REQUIRE(static_cast<bool>(at));
    }
    at.reset();
    BOOST_TEST(why(blocking::remove(in, path("/workspace/t"), soon())) == "done");
    BOOST_TEST(fs::is_empty(work()));
}

BOOST_AUTO_TEST_CASE(an_endless_supply_ends_at_the_time_limit) {
    const auto in = open(walk_kind::kernel);
    fs::create_directory(work("t"));
    std::atomic<bool> stop{false};
    std::jthread filler([&] {
        for (int i = 0; !stop; ++i) {
            const auto name = work("t/" + std::to_string(i % 100));
            (i / 100) % 2 == 0 ? put(name, "x") : static_cast<void>(::mkdir(name.c_str(), 0755));
            ::mkdir(work("t").c_str(), 0755);
        }
    });
    for (int round = 0; round < 20; ++round) {
        const auto answer = why(blocking::remove(
            in, path("/workspace/t"), std::chrono::steady_clock::now() + std::chrono::milliseconds(20)));
        BOOST_TEST((answer == "done" || answer == "timeout" || answer == "FileNotFoundError"), answer);
    }
    stop = true;
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace hostfs_tests
