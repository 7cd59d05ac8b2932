// File operations over the real agent.

#include "agent_fixture.hpp"

#include <boost/test/unit_test.hpp>

#include <filesystem>
#include <fstream>
#include <sys/stat.h>

using namespace sandboxd;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t limit = 10'000'000;

struct files : test::agent_fixture {
    files() : root(fs::temp_directory_path() / ("files-" + test::fresh_id())) {
        fs::create_directories(root);
    }
    ~files() { fs::remove_all(root); }

    [[nodiscard]] std::string at(const std::string& name) const { return (root / name).string(); }
    void put(const std::string& name, const std::string& bytes) const {
        std::ofstream(at(name), std::ios::binary) << bytes;
    }
    [[nodiscard]] std::string get_file(const std::string& name) const {
        std::ifstream in(at(name), std::ios::binary);
        return {std::istreambuf_iterator<char>(in), {}};
    }
    result<file_content> read(const std::string& path, std::uint64_t most = limit) {
        return test::get(context, box->read(path, most));
    }
    result<void> write(const std::string& path, std::string content) {
        return test::get(context, box->write(path, std::move(content)));
    }
    bool exists(const std::string& path) { return test::get(context, box->exists(path)).value(); }
    result<file_listing> ls(const std::string& path) { return test::get(context, box->ls(path)); }
    template <class T>
    void refused(const result<T>& got, errc code, const std::string& words) {
        BOOST_REQUIRE(!got);
        BOOST_TEST(name_of(got.error().code) == name_of(code));
        BOOST_TEST(got.error().message == words);
    }

    fs::path root;
};

std::string pattern_of(std::size_t size) {
    std::string out(size, '\0');
    std::uint32_t state = 12345;
    for (auto& byte : out) {
        state = state * 1664525 + 1013904223;
        byte = static_cast<char>(state >> 24);
    }
    return out;
}

} // namespace

BOOST_FIXTURE_TEST_SUITE(agent_files, files)

BOOST_AUTO_TEST_CASE(what_is_written_is_read_back_to_the_byte) {
    for (const std::size_t size : {0U, 1U, 4096U, 32'768U, 32'769U, 65'536U, 131'072U, 1'000'001U}) {
        const auto bytes = pattern_of(size);
        BOOST_REQUIRE(write(at("f"), bytes));
        BOOST_CHECK(get_file("f") == bytes);
        const auto got = read(at("f")).value();
        BOOST_CHECK(got.bytes == bytes);
        BOOST_TEST(!got.over_limit);
    }
}

BOOST_AUTO_TEST_CASE(a_file_of_64_mb_goes_both_ways) {
    const auto bytes = pattern_of(64 * 1024 * 1024);
    BOOST_REQUIRE(write(at("big"), bytes));
    BOOST_CHECK(read(at("big"), bytes.size()).value().bytes == bytes);
}

BOOST_AUTO_TEST_CASE(a_limit_is_exact_and_tells_the_size) {
    put("f", std::string(1'000, 'x'));
    BOOST_TEST(read(at("f"), 1'000).value().bytes.size() == 1'000U);
    const auto over = read(at("f"), 999).value();
    BOOST_TEST(over.over_limit);
    BOOST_TEST(over.size.value() == 1'000U);
    BOOST_TEST(over.bytes.empty());
}

BOOST_AUTO_TEST_CASE(a_file_whose_size_is_unknown_stops_at_the_limit) {
    const auto version = read("/proc/version").value();
    BOOST_TEST(version.bytes.starts_with("Linux version "));
    const auto over = read("/proc/version", 5).value();
    BOOST_TEST(over.over_limit);
    BOOST_TEST(!over.size);
    BOOST_TEST(over.bytes.empty());
}

BOOST_AUTO_TEST_CASE(missing_directories_and_odd_things_are_told_apart) {
    put("file", "x");
    fs::create_symlink("nowhere", root / "dangling");
    fs::create_symlink("loop", root / "loop");
    BOOST_REQUIRE(::mkfifo(at("fifo").c_str(), 0600) == 0);
    refused(read(at("missing")), errc::not_found, "No such file or directory");
    refused(read(at("dangling")), errc::not_found, "No such file or directory");
    refused(read(at("loop")), errc::invalid, "Too many levels of symbolic links");
    refused(read(root.string()), errc::invalid, "Is a directory");
    refused(read(at("file") + "/x"), errc::not_found, "Not a directory");
    refused(read(at("fifo")), errc::invalid, "It is a FIFO, not a file");
    refused(read("/dev/zero"), errc::invalid, "It is a device, not a file");
    refused(read(""), errc::not_found, "No such file or directory");
    refused(read(std::string("a\0b", 3)), errc::invalid, "The path or pattern holds a NUL character");
    refused(write(at("fifo"), "x"), errc::invalid, "It is a FIFO, not a file");
    refused(write("/dev/null", "x"), errc::invalid, "It is a device, not a file");
    refused(write(root.string(), "x"), errc::invalid, "Is a directory");
    refused(write(root.string() + "/", "x"), errc::invalid, "Is a directory");
    refused(write("", "x"), errc::not_found, "No such file or directory");
    refused(write(at("loop"), "x"), errc::invalid, "Too many levels of symbolic links");
    refused(write(at("file") + "/x", "y"), errc::invalid, "mkdir: Not a directory");
    refused(ls(at("missing")), errc::not_found, "No such file or directory");
    refused(ls(at("file")), errc::invalid, "Not a directory");
    refused(ls(at("fifo")), errc::invalid, "Not a directory");
    BOOST_TEST(get_file("file") == "x");
    BOOST_TEST(exists(at("file")));
    BOOST_TEST(!exists(at("fifo")));
    BOOST_TEST(!exists(at("dangling")));
    BOOST_TEST(!exists(at("loop")));
    BOOST_TEST(!exists(root.string()));
    BOOST_TEST(!exists(at("missing/below")));
}

BOOST_AUTO_TEST_CASE(a_listing_is_sorted_and_complete) {
    fs::create_directories(root / "zdir");
    put("b\nc", "12");
    put(" lead", "");
    put(std::string("\xff\x80", 2), "123");
    fs::create_symlink("zdir", root / "alink");
    const auto listing = ls(root.string() + "//").value();
    BOOST_TEST(!listing.truncated);
    std::vector<std::string> names;
    for (const auto& one : listing.entries) {
        BOOST_TEST(one.path == root.string() + "/" + one.name);
        BOOST_TEST(one.is_dir == (one.name == "zdir"));
        names.push_back(one.name);
    }
    const std::vector<std::string> expected{"zdir", " lead", "alink", "b\nc", "\xff\x80"};
    BOOST_TEST(names == expected, boost::test_tools::per_element());
    BOOST_TEST(listing.entries[1].size.value() == 0U);
    BOOST_TEST(listing.entries[3].size.value() == 2U);
    BOOST_TEST(ls("/").value().entries[0].path.starts_with("/"));
    BOOST_TEST(ls(".").value().entries[0].path.starts_with("./"));
}

BOOST_AUTO_TEST_SUITE_END()
