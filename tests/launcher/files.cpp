#include "launcher/blocking/files.hpp"
#include "support/scratch.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

using namespace sandboxd;
using namespace sandboxd::launcher::blocking;
namespace fs = std::filesystem;

namespace {

struct directory_fixture : test::scratch {
    core::unique_fd here = open_directory(path).value();
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(launcher_files, directory_fixture)

BOOST_AUTO_TEST_CASE(a_tree_goes_away_however_deep_it_is) {
    // Far deeper than a path can name.
    BOOST_REQUIRE(::mkdirat(here.get(), "tree", 0700) == 0);
    core::unique_fd at(::openat(here.get(), "tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const std::string name(200, 'd');
    for (int depth = 0; depth < 300; ++depth) {
        BOOST_REQUIRE(::mkdirat(at.get(), name.c_str(), 0700) == 0);
        const core::unique_fd file(::openat(at.get(), "f", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
        at.reset(::openat(at.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        BOOST_REQUIRE(static_cast<bool>(at));
    }
    at.reset();
    BOOST_TEST(remove_tree(here.get(), "tree").has_value());
    BOOST_TEST(!fs::exists(path + "/tree"));
}

BOOST_AUTO_TEST_CASE(removing_follows_no_link_and_knows_odd_names) {
    fs::create_directories(path + "/outside");
    std::ofstream(path + "/outside/kept") << "x";
    fs::create_directories(path + "/tree/.lifted-0/.lifted-1/.lifted-2");
    fs::create_directories(path + "/tree/a/.lifted-0/b");
    fs::create_directories(path + "/tree/a b\n/\xff");
    fs::create_directory_symlink(path + "/outside", path + "/tree/a/link");
    BOOST_TEST(::mkfifo((path + "/tree/a/fifo").c_str(), 0600) == 0);
    BOOST_TEST(remove_tree(here.get(), "tree").has_value());
    BOOST_TEST(!fs::exists(path + "/tree"));
    BOOST_TEST(fs::exists(path + "/outside/kept"));
    BOOST_TEST(remove_tree(here.get(), "tree").has_value()); // what is missing is removed
    fs::create_symlink(path + "/outside", path + "/link");
    BOOST_TEST(remove_tree(here.get(), "link").has_value());
    BOOST_TEST(fs::exists(path + "/outside/kept"));
}

BOOST_AUTO_TEST_CASE(nothing_leads_out_of_a_root) {
    fs::create_directories(path + "/root/etc");
    std::ofstream(path + "/secret") << "outside";
    std::ofstream(path + "/root/etc/passwd") << "inside";
    fs::create_symlink("/etc/passwd", path + "/root/absolute");
    fs::create_symlink("../../secret", path + "/root/relative");
    const auto root = open_directory(path + "/root");
    const auto through = open_in_root(root->get(), "/absolute", O_RDONLY);
    BOOST_REQUIRE(through.has_value());
    BOOST_TEST(*read_descriptor(through->get(), "x", 100) == "inside");
    BOOST_TEST(!open_in_root(root->get(), "/relative", O_RDONLY).has_value());
    BOOST_TEST(!open_in_root(root->get(), "../secret", O_RDONLY).has_value());
    const auto made = make_directories_in_root(root->get(), "/a/./b//c", ::getuid(), ::getgid());
    BOOST_TEST(made.has_value());
    BOOST_TEST(fs::is_directory(path + "/root/a/b/c"));
}

BOOST_AUTO_TEST_CASE(reading_is_bounded_and_never_waits) {
    std::ofstream(path + "/f") << "12345";
    BOOST_TEST(*read_file(path + "/f", 5) == "12345");
    BOOST_TEST((read_file(path + "/f", 4).error().code == errc::invalid));
    BOOST_TEST((read_file(path + "/none", 4).error().code == errc::not_found));
    BOOST_TEST(::mkfifo((path + "/fifo").c_str(), 0600) == 0);
    BOOST_TEST((read_file(path + "/fifo", 4).error().code == errc::invalid));
    BOOST_TEST(write_file_at(here.get(), "g", "new", 0640).has_value());
    BOOST_TEST(*read_file(path + "/g", 10) == "new");
    BOOST_TEST(!fs::exists(path + "/g.new"));
}

BOOST_AUTO_TEST_SUITE_END()
