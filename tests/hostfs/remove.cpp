#include "fixture.hpp"

#include "hostfs/blocking/remove.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>

#include <atomic>
#include <fcntl.h>
#include <thread>
#include <unistd.h>
#include <vector>

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

BOOST_AUTO_TEST_CASE(a_thorough_removal_leaves_only_what_can_not_be_removed) {
    if (::geteuid() != 0) {
        return; // root lowers its rights here; others have none to give up
    }
    const auto in = open(walk_kind::kernel);
    const auto remove = [&in](const std::string& name, blocking::removal how) {
        return blocking::remove_entry(in.find("").value(), name, soon(), how).value();
    };
    // Owned by nobody, who may not change what is root's in it; one directory is shut by its owner.
    BOOST_REQUIRE(::chown(work().c_str(), 65534, 65534) == 0);
    const auto give = [this](const std::string& name, mode_t mode) {
        fs::create_directories(work(name));
        BOOST_REQUIRE(::chown(work(name).c_str(), 65534, 65534) == 0);
        BOOST_REQUIRE(::chmod(work(name).c_str(), mode) == 0);
    };
    give("t", 0755);
    for (int i = 0; i < 300; ++i) {
        const auto name = "t/" + std::to_string(i);
        give(name, 0755);
        put(work(name + "/f"), "x");
        put(work(name + "-file"), "x");
    }
    give("t/shut", 0755);
    put(work("t/shut/f"), "x");
    give("t/shut/below", 0755);
    BOOST_REQUIRE(::chmod(work("t/shut").c_str(), 0) == 0);
    fs::create_directories(work("t/150/roots/deep"));
    put(work("t/150/roots/deep/f"), "x");
    {
        const as_nobody lowered;
        BOOST_TEST(remove("t", blocking::removal::strict) != 0);
        BOOST_TEST(fs::exists(work("t")));
        BOOST_TEST(remove("t", blocking::removal::thorough) == EACCES);
    }
    std::vector<std::string> left;
    for (const auto& one : fs::recursive_directory_iterator(work())) {
        left.push_back(one.path().lexically_relative(work()).string());
    }
    const std::vector<std::string> expected{"t", "t/150", "t/150/roots", "t/150/roots/deep",
                                            "t/150/roots/deep/f"};
    BOOST_TEST(left == expected, boost::test_tools::per_element());
    BOOST_TEST(remove("t", blocking::removal::thorough) == 0);
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
