#include "hostfs/in_memory.hpp"
#include "fixture.hpp"

#include <algorithm>
#include <cerrno>
#include <string>
#include <sys/mount.h>
#include <tuple>

namespace hostfs_tests {

namespace {

struct memory_fixture : workspace_fixture {
    memory_fixture() {
        fs::create_directories(work("d/e"));
        put(work("d/f"), "content");
    }
    [[nodiscard]] std::optional<cached_node> find(const std::string& relative) const {
        return find_in(root, "s", relative);
    }
    /// Several tries: while somebody mounts something, the kernel leaves a look to a worker now and then.
    [[nodiscard]] static std::optional<cached_node> find_in(const std::string& root, const std::string& id,
                                                            const std::string& relative) {
        std::optional<cached_node> found;
        for (int i = 0; i < 1000 && !found; ++i) {
            found = cached_node::find(root, id, relative);
        }
        return found;
    }
};

auto fields(const file_entry& one) {
    return std::tie(one.name, one.path, one.is_dir, one.size);
}

bool same(const file_entry& one, const file_entry& other) {
    return fields(one) == fields(other);
}

} // namespace

BOOST_FIXTURE_TEST_SUITE(hostfs_in_memory, memory_fixture)

BOOST_AUTO_TEST_CASE(nothing_before_the_file_system_is_known) {
    BOOST_TEST(!find("d/f").has_value());
    blocking::learn_file_system(root + "/elsewhere");
    BOOST_TEST(!find("d/f").has_value());
    blocking::learn_file_system("/proc"); // no local disk
    BOOST_TEST(!find_in("/proc", "self", "").has_value());
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

BOOST_AUTO_TEST_CASE(entries_are_those_a_worker_gives) {
    blocking::learn_file_system(root);
    put(work("d/another"), "");
    const auto in = blocking::workspace::open(root, "s").value();
    for (const char* const given :
         {"/workspace", "/workspace/d", "/workspace/d/f", "/workspace/d/e", "/workspace/d/"}) {
        BOOST_TEST_INFO(given);
        const auto path = parse_native(given, "/workspace").value();
        const auto found = find(path.relative).value();
        BOOST_TEST(same(found.entry(path), blocking::stat(in, path).value()));
        const auto theirs = blocking::list(in, path, blocking::time_limit::max());
        const auto ours = found.entries(path);
        BOOST_TEST(ours.has_value() == theirs.has_value());
        BOOST_TEST(
            (ours ? std::ranges::equal(*ours, *theirs, same) : ours.error().why == theirs.error().why));
    }
    const auto path = parse_native("/workspace/d", "/workspace").value();
    const auto rows = find("d").value().entries(path).value();
    BOOST_REQUIRE(rows.size() == 3U);
    BOOST_TEST(rows.at(0).path == "/workspace/d/another");
    BOOST_TEST(rows.at(2).size.value() == 7U);
}

BOOST_AUTO_TEST_CASE(a_root_reached_through_a_link) {
    const auto link = root + "-link";
    fs::create_directory_symlink(root, link);
    blocking::learn_file_system(link);
    BOOST_TEST(find_in(link, "s", "d/f").value().content(100).value() == "content");
    BOOST_TEST(!find("d/f").has_value()); // known by the other name
    fs::create_directories(root + "/elsewhere/s/workspace/d");
    put(root + "/elsewhere/s/workspace/d/f", "moved");
    fs::remove(link);
    fs::create_directory_symlink(root + "/elsewhere", link);
    BOOST_TEST(find_in(link, "s", "d/f").value().content(100).value() == "moved"); // as a worker would say
    fs::remove(link);
}

BOOST_AUTO_TEST_CASE(what_is_mounted_elsewhere_is_left_to_a_worker) {
    if (::geteuid() != 0) {
        BOOST_TEST_MESSAGE("only root can mount");
        return;
    }
    BOOST_REQUIRE(::mount("none", work("d/e").c_str(), "tmpfs", 0, nullptr) == 0);
    blocking::learn_file_system(root);
    const bool inside = find("d/e").has_value();
    ::umount2(work("d/e").c_str(), MNT_DETACH);
    BOOST_TEST(!inside);
    BOOST_TEST(find("d/e").has_value());
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
        BOOST_TEST(!find_in(root, id, "").has_value());
    }
}

BOOST_AUTO_TEST_CASE(a_workspace_that_is_a_link) {
    blocking::learn_file_system(root);
    fs::create_directories(root + "/t");
    fs::create_directory_symlink(host(), root + "/t/workspace");
    BOOST_TEST(!find_in(root, "t", "secret").has_value());
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
