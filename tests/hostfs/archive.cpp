#include "hostfs/blocking/archive.hpp"

#include "fixture.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>

#include <fcntl.h>
#include <unistd.h>

namespace hostfs_tests {

namespace data = boost::unit_test::data;
using blocking::archive_listing;
using blocking::row_budget;

namespace {

std::string shown(const result<archive_listing>& listing) {
    std::string out;
    for (const auto& row : listing.value().entries) {
        out += row.path + (row.is_dir ? "/ " : "=" + std::to_string(row.size.value()) + " ");
    }
    return out + (listing.value().truncated ? "..." : "");
}

struct archive_fixture : workspace_fixture {
    [[nodiscard]] result<archive_listing> walk(const blocking::workspace& in, std::string start,
                                               std::size_t depth, std::size_t entries) const {
        row_budget plenty(1'000'000);
        return blocking::tree(in, start, {depth, entries}, plenty, soon());
    }
    void small_tree() const {
        fs::create_directories(work("src/lib"));
        fs::create_directories(work("docs"));
        put(work("src/lib/deep.txt"), "12");
        put(work("src/app.py"), "123");
        put(work("README"), "1");
        put(work(".env"), "");
        fs::create_symlink("README", work("link"));
        fs::create_directory_symlink(host(), work("docs/out"));
    }
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(hostfs_archive, archive_fixture)

BOOST_DATA_TEST_CASE(ls_shows_directories_first_and_no_links, data::make(both_walks), how) {
    const auto in = open(how);
    small_tree();
    BOOST_REQUIRE(::mkfifo(work("fifo").c_str(), 0600) == 0);
    put(work("\xff"), "x");
    BOOST_TEST(shown(blocking::ls(in, "", soon())) == "docs/ src/ .env=0 README=1 fifo=0 ");
    BOOST_TEST(shown(blocking::ls(in, "src", soon())) == "src/lib/ src/app.py=3 ");
    BOOST_TEST(shown(blocking::ls(in, "docs", soon())) == "");
    const auto row = blocking::ls(in, "src", soon()).value().entries.at(1);
    BOOST_TEST(row.name == "app.py");
    BOOST_TEST(row.modified_at.has_value());
    BOOST_TEST(!blocking::ls(in, "", soon()).value().entries.front().modified_at.has_value());
}

BOOST_DATA_TEST_CASE(what_an_archive_refuses, data::make(both_walks), how) {
    const auto in = open(how);
    small_tree();
    BOOST_REQUIRE(::mkfifo(work("fifo").c_str(), 0600) == 0);
    const auto ls_code = [&](const std::string& at) { return blocking::ls(in, at, soon()).error().code; };
    const auto read_code = [&](const std::string& at) {
        return blocking::read_archived(in, at, 10, soon()).error().code;
    };
    BOOST_TEST((ls_code("README") == errc::not_found));
    BOOST_TEST((ls_code("none") == errc::not_found));
    BOOST_TEST((ls_code("README/x") == errc::not_found));
    BOOST_TEST((ls_code("link") == errc::invalid));
    BOOST_TEST((ls_code("docs/out") == errc::invalid));
    BOOST_TEST((ls_code(std::string(256, 'n')) == errc::invalid));
    BOOST_TEST((read_code("src") == errc::not_found));
    BOOST_TEST((read_code("none") == errc::not_found));
    BOOST_TEST((read_code("link") == errc::invalid));
    BOOST_TEST((read_code("docs/out/secret") == errc::invalid));
    BOOST_TEST((read_code("fifo") == errc::invalid));
    BOOST_TEST(blocking::ls(in, "link", soon()).error().message.find("outside the workspace") !=
               std::string::npos);
    BOOST_TEST(blocking::ls(in, "none", soon()).error().message == "Not a directory: 'none'");
    BOOST_TEST(blocking::read_archived(in, "", 3, soon()).error().message == "Not a regular file: '.'");
    BOOST_TEST(blocking::read_archived(in, "src/app.py", 3, soon()).value() == "123");
    const auto over = blocking::read_archived(in, "src/app.py", 2, soon());
    BOOST_TEST((over.error().code == errc::invalid));
    BOOST_TEST(over.error().message == "'src/app.py' is over the 2-byte read limit");
}

BOOST_DATA_TEST_CASE(a_tree_is_walked_breadth_first, data::make(both_walks), how) {
    const auto in = open(how);
    small_tree();
    BOOST_TEST(shown(walk(in, "", 6, 2000)) ==
               "docs/ src/ .env=0 README=1 src/lib/ src/app.py=3 src/lib/deep.txt=2 ");
    BOOST_TEST(shown(walk(in, "src", 6, 2000)) == "src/lib/ src/app.py=3 src/lib/deep.txt=2 ");
    BOOST_TEST(shown(walk(in, "", 1, 2000)) == "docs/ src/ .env=0 README=1 ...");
    BOOST_TEST(shown(walk(in, "src", 1, 2000)) == "src/lib/ src/app.py=3 ...");
    BOOST_TEST(shown(walk(in, "src/lib", 1, 2000)) == "src/lib/deep.txt=2 ");
    BOOST_TEST(shown(walk(in, "", 2, 2000)) == "docs/ src/ .env=0 README=1 src/lib/ src/app.py=3 ...");
    BOOST_TEST((walk(in, "README", 6, 10).error().code == errc::not_found));
    BOOST_TEST((walk(in, "none", 6, 10).error().code == errc::not_found));
    BOOST_TEST((walk(in, "docs/out", 6, 10).error().code == errc::invalid));
}

BOOST_DATA_TEST_CASE(a_tree_stops_at_its_entries, data::make(both_walks), how) {
    const auto in = open(how);
    small_tree();
    fs::remove(work("link"));
    BOOST_TEST(shown(walk(in, "", 6, 7)) ==
               "docs/ src/ .env=0 README=1 src/lib/ src/app.py=3 src/lib/deep.txt=2 ");
    BOOST_TEST(shown(walk(in, "", 6, 6)) == "docs/ src/ .env=0 README=1 src/lib/ src/app.py=3 ...");
    BOOST_TEST(walk(in, "", 6, 1).value().entries.size() == 1U);
    BOOST_TEST(walk(in, "", 6, 1).value().truncated);
    // Four entries, and two directories without any: nothing more to list.
    fs::remove_all(work("src/lib"));
    fs::remove(work("src/app.py"));
    BOOST_TEST(shown(walk(in, "", 6, 4)) == "docs/ src/ .env=0 README=1 ");
}

BOOST_DATA_TEST_CASE(a_directory_full_of_links_is_cut_short, data::make(both_walks), how) {
    const auto in = open(how);
    for (int i = 0; i < 50; ++i) {
        fs::create_symlink("x", work("link" + std::to_string(i)));
    }
    const auto found = walk(in, "", 6, 10).value();
    BOOST_TEST(found.entries.empty());
    BOOST_TEST(found.truncated);
    BOOST_TEST(shown(walk(in, "", 6, 100)) == "");
}

BOOST_DATA_TEST_CASE(the_rows_of_all_trees_together_are_bounded, data::make(both_walks), how) {
    const auto in = open(how);
    small_tree();
    row_budget few(5);
    BOOST_TEST(shown(blocking::tree(in, "", {1, 100}, few, soon())) == "docs/ src/ .env=0 README=1 ...");
    BOOST_TEST(shown(blocking::tree(in, "src", {6, 100}, few, soon())) == "src/lib/ ...");
    BOOST_TEST(shown(blocking::tree(in, "src", {6, 100}, few, soon())) == "...");
    BOOST_TEST(shown(blocking::tree(in, "docs", {6, 100}, few, soon())) == "");
}

BOOST_DATA_TEST_CASE(the_bytes_of_all_paths_together_are_bounded, data::make(both_walks), how) {
    const auto in = open(how);
    small_tree();
    // Path and name of the four rows at the top: 34 bytes; of src/lib: 10.
    row_budget exactly(100, 34);
    BOOST_TEST(shown(blocking::tree(in, "", {1, 100}, exactly, soon())) == "docs/ src/ .env=0 README=1 ...");
    BOOST_TEST(shown(blocking::tree(in, "src", {6, 100}, exactly, soon())) == "...");
    BOOST_TEST(shown(blocking::tree(in, "docs", {6, 100}, exactly, soon())) == "");
    row_budget one_more(100, 34 + 10);
    BOOST_TEST(shown(blocking::tree(in, "", {6, 100}, one_more, soon())) ==
               "docs/ src/ .env=0 README=1 src/lib/ ...");
    row_budget one_short(100, 33);
    BOOST_TEST(shown(blocking::tree(in, "", {6, 100}, one_short, soon())) == "docs/ src/ .env=0 ...");
}

BOOST_AUTO_TEST_CASE(a_listing_of_long_paths_stops_at_its_bytes) {
    const auto in = open(walk_kind::kernel);
    const int most = static_cast<int>(row_budget::most_bytes / (3'764 + 1 + 2 * 6));
    const auto deep = deep_directory(most);
    BOOST_REQUIRE(deep.size() == 3'764U);
    const auto all = blocking::ls(in, deep, soon()).value();
    BOOST_TEST(all.entries.size() == static_cast<std::size_t>(most));
    BOOST_TEST(!all.truncated);
    put(work(deep) + "/200000", "");
    const auto cut = blocking::ls(in, deep, soon()).value();
    BOOST_TEST(cut.entries.size() == static_cast<std::size_t>(most));
    BOOST_TEST(cut.truncated);
    BOOST_TEST(cut.entries.back().path == deep + "/" + std::to_string(100'000 + most - 1));
}

BOOST_DATA_TEST_CASE(unreadable_directories, data::make(both_walks), how) {
    if (::geteuid() != 0) {
        return; // root lowers its rights here; others have none to give up
    }
    const auto in = open(how);
    fs::create_directories(work("closed"));
    put(work("closed/f"), "x");
    put(work("secret"), "x");
    BOOST_REQUIRE(::chmod(work("closed").c_str(), 0700) == 0);
    BOOST_REQUIRE(::chmod(work("secret").c_str(), 0600) == 0);
    const as_nobody lowered;
    BOOST_TEST((blocking::ls(in, "closed", soon()).error().code == errc::denied));
    BOOST_TEST((walk(in, "closed", 6, 10).error().code == errc::denied));
    BOOST_TEST((blocking::read_archived(in, "secret", 10, soon()).error().code == errc::denied));
    BOOST_TEST(shown(walk(in, "", 6, 10)) == "closed/ secret=1 ...");
}

BOOST_DATA_TEST_CASE(a_name_that_is_not_utf_8_truncates_a_tree, data::make(both_walks), how) {
    const auto in = open(how);
    put(work("\xff"), "x");
    put(work("a"), "x");
    BOOST_TEST(shown(walk(in, "", 6, 10)) == "a=1 ...");
    BOOST_TEST(shown(blocking::ls(in, "", soon())) == "a=1 ");
}

BOOST_DATA_TEST_CASE(a_link_is_left_out_in_silence_whatever_its_name, data::make(both_walks), how) {
    const auto in = open(how);
    fs::create_symlink("a", work("\xff"));
    put(work("a"), "x");
    BOOST_TEST(shown(walk(in, "", 6, 10)) == "a=1 ");
    BOOST_TEST(shown(blocking::ls(in, "", soon())) == "a=1 ");
}

BOOST_AUTO_TEST_CASE(late_is_a_timeout) {
    const auto in = open(walk_kind::kernel);
    const auto late = std::chrono::steady_clock::now();
    row_budget plenty(10);
    BOOST_TEST((blocking::ls(in, "", late).error().code == errc::timeout));
    BOOST_TEST((blocking::tree(in, "", {}, plenty, late).error().code == errc::timeout));
    put(work("f"), "x");
    BOOST_TEST((blocking::read_archived(in, "f", 10, late).error().code == errc::timeout));
    BOOST_TEST(why(blocking::list(in, path("/workspace"), late)) == "timeout");
}

BOOST_AUTO_TEST_CASE(times_as_python_prints_them) {
    using blocking::iso_time;
    BOOST_TEST(iso_time({0, 0}).value() == "1970-01-01T00:00:00+00:00");
    BOOST_TEST(iso_time({1767323045, 600'000}).value() == "2026-01-02T03:04:05.000600+00:00");
    BOOST_TEST(iso_time({1767323045, 123'456'500}).value() == "2026-01-02T03:04:05.123456+00:00");
    // What Python makes of a file's time, a double: the last digit is not always the nearest.
    BOOST_TEST(iso_time({1796008363, 176'754'500}).value() == "2026-11-30T03:12:43.176754+00:00");
    BOOST_TEST(iso_time({1767323045, 999'999'700}).value() == "2026-01-02T03:04:06+00:00");
    BOOST_TEST(iso_time({-62135596800, 0}).value() == "0001-01-01T00:00:00+00:00");
    BOOST_TEST(!iso_time({-62135596801, 0}).has_value());
    BOOST_TEST(!iso_time({253402300800, 0}).has_value());
    BOOST_TEST(!iso_time({std::numeric_limits<time_t>::max(), 0}).has_value());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace hostfs_tests
