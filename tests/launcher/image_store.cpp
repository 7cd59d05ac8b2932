// Names of images, what is in use, and layers that become images, on a directory of the test's own.

#include "launcher/blocking/files.hpp"
#include "launcher/blocking/image_names.hpp"
#include "launcher/blocking/images.hpp"
#include "launcher/blocking/scratch.hpp"
#include "launcher/blocking/tools.hpp"
#include "launcher/blocking/unshift.hpp"
#include "support/scratch.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

using namespace sandboxd;
using namespace sandboxd::launcher;
using namespace sandboxd::launcher::blocking;
namespace fs = std::filesystem;

namespace {

struct store {
    store() {
        fs::create_directories(state + "/images");
        fs::create_directories(state + "/oci");
        context.options.state_dir = state;
        context.progress = [](const std::string&) {};
    }

    static deadline soon() { return std::chrono::steady_clock::now() + std::chrono::minutes(1); }

    void image(const std::string& key, const std::string& below = "") const {
        const auto path = state + "/images/" + key;
        fs::create_directories(path + "/rootfs");
        std::ofstream(path + "/image.json") << encode_image_config({});
        if (!below.empty()) {
            std::ofstream(path + "/below") << below;
        }
    }
    [[nodiscard]] bool has(const std::string& key) const { return fs::exists(state + "/images/" + key); }

    test::scratch own;
    std::string state = own.path;
    worker_context context{{}, {}, uid_ranges("/nowhere", {}), {}, {}};
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(launcher_image_store, store)

BOOST_AUTO_TEST_CASE(names_are_kept_and_dropped) {
    BOOST_TEST(read_image_names(state).empty());
    BOOST_REQUIRE(put_image_name(state, "a", "sha256-1", soon()));
    BOOST_REQUIRE(put_image_name(state, "b", "sha256-2", soon()));
    BOOST_REQUIRE(put_image_name(state, "a", "sha256-3", soon()));
    BOOST_TEST((read_image_names(state) == image_map{{"a", "sha256-3"}, {"b", "sha256-2"}}));
    BOOST_REQUIRE(drop_image_names(state, {"b", "none"}, soon()));
    BOOST_TEST((find_image_name(state, "a") == "sha256-3"));
    BOOST_TEST(!find_image_name(state, "b").has_value());
    std::ofstream(state + "/images/names.json") << "{half";
    BOOST_TEST(read_image_names(state).empty());
}

BOOST_AUTO_TEST_CASE(what_nothing_stands_on_is_removed) {
    for (const char* key : {"sha256-aa", "sha256-bb", "sha256-cc", "sha256-dd", "host-ee"}) {
        image(key);
    }
    image("built-01", "sha256-bb\n");
    image("built-02", "sha256-dd\n");
    BOOST_REQUIRE(put_image_name(state, "a", "sha256-aa", soon()));
    BOOST_REQUIRE(put_image_name(state, "b", "built-01", soon()));
    BOOST_REQUIRE(put_image_name(state, "gone", "built-02", soon()));
    fs::create_directories(state + "/oci/slot/layer");
    std::ofstream(state + "/oci/slot/image") << "sha256-cc";
    BOOST_REQUIRE(forget(context, {{"gone"}}, soon()));
    for (const char* key : {"sha256-aa", "sha256-bb", "sha256-cc", "host-ee", "built-01"}) {
        BOOST_TEST(has(key), key);
    }
    BOOST_TEST(!has("sha256-dd"));
    BOOST_TEST(!has("built-02"));
    const auto names = list_names(context, {});
    BOOST_REQUIRE(names.has_value());
    BOOST_TEST((names->references == std::vector<std::string>{"a", "b"}));
}

BOOST_AUTO_TEST_CASE(nothing_is_removed_while_a_layer_does_not_say_what_it_stands_on) {
    image("sha256-aa");
    fs::create_directories(state + "/oci/old/layer");
    BOOST_REQUIRE(forget(context, {}, soon()));
    BOOST_TEST(has("sha256-aa"));
    fs::remove_all(state + "/oci/old");
    BOOST_REQUIRE(forget(context, {}, soon()));
    BOOST_TEST(!has("sha256-aa"));
}

BOOST_AUTO_TEST_CASE(names_come_in_pages) {
    std::string text;
    for (std::size_t i = 0; i < images_page + 7; ++i) {
        text += (i == 0 ? "{" : ",") + std::string("\"n") + std::to_string(i + 1000) + "\":\"sha256-aa\"";
    }
    std::ofstream(state + "/images/names.json") << text << "}";
    const auto first = list_names(context, {});
    BOOST_REQUIRE(first.has_value());
    BOOST_TEST(first->references.size() == images_page);
    const auto rest = list_names(context, {first->references.back()});
    BOOST_REQUIRE(rest.has_value());
    BOOST_TEST(rest->references.size() == 7U);
    BOOST_TEST(rest->references.front() == "n1500");
}

BOOST_AUTO_TEST_CASE(notes_and_locks_of_what_is_gone_go_too) {
    image("sha256-aa");
    BOOST_REQUIRE(put_image_name(state, "a", "sha256-aa", soon()));
    const auto images = state + "/images/";
    std::ofstream(images + ".archive-1") << "sha256-aa";
    std::ofstream(images + ".archive-2") << "sha256-bb";
    for (const char* name : {".archive-2.lock", ".lock-name-1", ".lock-sha256-bb"}) {
        std::ofstream(images + name) << "";
    }
    const auto held = lock_file(images + ".lock-name-2", soon(), "busy");
    BOOST_REQUIRE(held.has_value());
    BOOST_REQUIRE(forget(context, {}, soon()));
    std::vector<std::string> left;
    for (const auto& one : fs::directory_iterator(images)) {
        left.push_back(one.path().filename());
    }
    std::sort(left.begin(), left.end());
    BOOST_TEST(left == (std::vector<std::string>{".archive-1", ".lock", ".lock-name-2", ".lock-names",
                                                 "names.json", "sha256-aa"}),
               boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_disk_that_lacks_bytes_or_inodes_is_refused) {
    struct statvfs disk{};
    disk.f_frsize = 4096;
    disk.f_blocks = 1000;
    disk.f_bavail = 50;
    disk.f_files = 2000;
    disk.f_favail = 100;
    BOOST_TEST(!lack_of_room(disk).has_value());
    disk.f_favail = 99;
    BOOST_TEST(lack_of_room(disk).value_or("").find("fewer than 100 would be left") != std::string::npos);
    disk.f_files = disk.f_favail = 0; // no fixed number
    BOOST_TEST(!lack_of_room(disk).has_value());
    disk.f_bavail = 49;
    BOOST_TEST(lack_of_room(disk).value_or("").find("is nearly full") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_built_image_lies_on_others) {
    image("sha256-aa");
    image("built-01", "dir:/srv/base\n");
    image("built-02", "built-01\ndir:/srv/base\n");
    const auto found = find_image(context, "built-02");
    BOOST_REQUIRE(found.has_value());
    BOOST_TEST((found->layers == std::vector<std::string>{state + "/images/built-02/rootfs",
                                                          state + "/images/built-01/rootfs", "/srv/base"}));
    for (const char* key : {"built-03", "built-", "sha256-../x", "other-1", ""}) {
        BOOST_TEST(!find_image(context, key).has_value(), key);
    }
}

BOOST_AUTO_TEST_CASE(what_a_killed_import_left_is_swept_and_what_is_in_use_is_not) {
    fs::create_directories(state + "/images/.new-dead/deep");
    scratch used(state + "/images");
    BOOST_REQUIRE(used.make());
    sweep_imports(state);
    BOOST_TEST(!fs::exists(state + "/images/.new-dead"));
    BOOST_TEST(fs::exists(used.path()));
}

BOOST_AUTO_TEST_CASE(an_image_in_the_making_is_left_by_sweeps_beside_it) {
    std::atomic<bool> done{false};
    std::thread sweeper([&] {
        while (!done) {
            sweep_imports(state);
        }
    });
    for (int round = 0; round < 20; ++round) {
        const auto made = make_host_image(context);
        BOOST_TEST((made ? *made : made.error().message).substr(0, 5) == "host-");
    }
    done = true;
    sweeper.join();
    BOOST_TEST(std::distance(fs::directory_iterator(state + "/images"), {}) == 1);
}

BOOST_AUTO_TEST_CASE(words_of_the_tools) {
    BOOST_TEST(message_of(R"(time="x" level=fatal msg="Error: \"a\"\nmore" b=1)") == R"(Error: "a" more)");
    BOOST_TEST(message_of("plain") == "plain");
    BOOST_TEST(message_of("msg=\"open") == "open");
}

BOOST_AUTO_TEST_CASE(a_layer_gets_ids_from_0, *boost::unit_test::precondition([](auto) {
                         return boost::test_tools::assertion_result(::geteuid() == 0);
                     })) {
    constexpr std::uint32_t base = 0x20000000;
    const auto tree = state + "/tree";
    fs::create_directories(tree + "/deep/er");
    std::ofstream(tree + "/deep/er/tool") << "x";
    fs::create_hard_link(tree + "/deep/er/tool", tree + "/again");
    fs::create_symlink("/etc/shadow", tree + "/link");
    std::ofstream(tree + "/foreign") << "x";
    for (const char* name : {"", "/deep", "/deep/er", "/link"}) {
        BOOST_REQUIRE(::lchown((tree + name).c_str(), base, base) == 0);
    }
    BOOST_REQUIRE(::lchown((tree + "/deep/er/tool").c_str(), base + 12, base + 34) == 0);
    BOOST_REQUIRE(::chmod((tree + "/deep/er/tool").c_str(), 06755) == 0);
    BOOST_REQUIRE(::lchown((tree + "/foreign").c_str(), base + 65536, base - 1) == 0);
    struct stat shadow{};
    ::stat("/etc/shadow", &shadow);
    BOOST_REQUIRE(unshift_tree(tree, base, soon()));
    struct stat status{};
    BOOST_REQUIRE(::lstat((tree + "/again").c_str(), &status) == 0);
    BOOST_TEST(status.st_uid == 12U);
    BOOST_TEST(status.st_gid == 34U);
    BOOST_TEST((status.st_mode & 07777) == 06755U);
    for (const char* name : {"", "/deep", "/deep/er", "/link"}) {
        BOOST_REQUIRE(::lstat((tree + name).c_str(), &status) == 0);
        BOOST_TEST(status.st_uid == 0U, name);
        BOOST_TEST(status.st_gid == 0U, name);
    }
    BOOST_REQUIRE(::lstat((tree + "/foreign").c_str(), &status) == 0);
    BOOST_TEST(status.st_uid == base + 65536);
    BOOST_TEST(status.st_gid == base - 1);
    struct stat after{};
    ::stat("/etc/shadow", &after);
    BOOST_TEST(after.st_uid == shadow.st_uid);
    BOOST_TEST(!unshift_tree(tree + "/none", base, soon()));
}

BOOST_AUTO_TEST_SUITE_END()
