#include "hostfs/in_memory.hpp"
#include "fixture.hpp"

#include <cerrno>
#include <string>

namespace hostfs_tests {

namespace {

struct memory_fixture : workspace_fixture {
    memory_fixture() {
        fs::create_directories(work("d/e"));
        put(work("d/f"), "content");
    }
    [[nodiscard]] std::optional<cached_node> find(const std::string& relative) const {
        return cached_node::find(root, "s", relative);
    }
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(hostfs_in_memory, memory_fixture)

BOOST_AUTO_TEST_CASE(nothing_before_the_file_system_is_known) {
    BOOST_TEST(!find("d/f").has_value());
    blocking::learn_file_system(root + "/elsewhere");
    BOOST_TEST(!find("d/f").has_value());
    blocking::learn_file_system("/proc"); // no local disk
    BOOST_TEST(!cached_node::find("/proc", "self", "").has_value());
    blocking::learn_file_system(root);
    BOOST_TEST(find("d/f").has_value());
}

BOOST_AUTO_TEST_CASE(files_and_directories_are_found) {
    blocking::learn_file_system(root);
    BOOST_TEST(find("").value().is_directory());
    BOOST_TEST(find("d/e").value().is_directory());
    BOOST_TEST(!find("d/f").value().is_directory());
    BOOST_TEST(find("d/f").value().content(100).value() == "content");
    BOOST_TEST(!find("d/e").value().content(100).has_value());
}

BOOST_AUTO_TEST_CASE(limits_of_a_content) {
    blocking::learn_file_system(root);
    BOOST_TEST(find("d/f").value().content(7).value() == "content");
    BOOST_TEST(!find("d/f").value().content(6).has_value());
    put(work("empty"), "");
    BOOST_TEST(find("empty").value().content(0).value().empty());
    put(work("large"), std::string(256 * 1024, 'x'));
    BOOST_TEST(find("large").value().content(1'000'000).value().size() == 256U * 1024);
    put(work("larger"), std::string(256 * 1024 + 1, 'x'));
    BOOST_TEST(!find("larger").value().content(1'000'000).has_value());
    const auto found = find("d/f").value();
    put(work("d/f"), "content and more");
    BOOST_TEST(!found.content(100).has_value()); // it has changed since
}

BOOST_AUTO_TEST_CASE(everything_else_is_left_to_a_worker) {
    blocking::learn_file_system(root);
    fs::create_directory_symlink(host(), work("out"));
    fs::create_symlink(work("d/f"), work("link"));
    BOOST_REQUIRE(::mkfifo(work("fifo").c_str(), 0600) == 0);
    for (const char* const path :
         {"missing", "d/f/below", "out", "out/secret", "link", "fifo", "..", "../../host"}) {
        BOOST_TEST_INFO(path);
        BOOST_TEST(!find(path).has_value());
    }
    for (const char* const id : {"", ".", "..", "s/workspace/..", "none"}) {
        BOOST_TEST_INFO(id);
        BOOST_TEST(!cached_node::find(root, id, "").has_value());
    }
}

BOOST_AUTO_TEST_CASE(a_workspace_that_is_a_link) {
    blocking::learn_file_system(root);
    fs::create_directories(root + "/t");
    fs::create_directory_symlink(host(), root + "/t/workspace");
    BOOST_TEST(!cached_node::find(root, "t", "secret").has_value());
}

BOOST_AUTO_TEST_CASE(a_directory_counts_as_listed_when_it_was) {
    blocking::learn_file_system(root);
    BOOST_TEST(!find("d").value().listed_lately());
    blocking::note_listed(root, "s", "d");
    BOOST_TEST(find("d").value().listed_lately());
    BOOST_TEST(!find("d/e").value().listed_lately());
    blocking::note_listed(root, "s", "d/f");
    BOOST_TEST(!find("d/f").value().listed_lately()); // no directory
    for (int i = 0; i < 300; ++i) {
        put(work("d/file-with-a-long-name-" + std::to_string(i)), "");
    }
    BOOST_TEST(!find("d").value().listed_lately()); // no longer small
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace hostfs_tests
