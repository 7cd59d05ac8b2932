#include "text/lines.hpp"
#include "text/file_kind.hpp"

#include <boost/test/unit_test.hpp>

#include <vector>

// Contract 3.3.1 to 3.3.3: kinds by name, lines and slices of them.

namespace sandboxd::text {

namespace {

std::vector<std::string> lines_of(std::string_view text) {
    line_reader reader(text);
    std::vector<std::string> all;
    std::string_view line;
    while (reader.next(line)) {
        all.emplace_back(line);
    }
    return all;
}

using list = std::vector<std::string>;

} // namespace

BOOST_AUTO_TEST_SUITE(lines)

BOOST_AUTO_TEST_CASE(every_end_of_line_of_python) {
    const auto found = lines_of("a\nb\r\nc\rd\ve\ff\x1Cg\x1Dh\x1Ei\xC2\x85j\xE2\x80\xA8k\xE2\x80\xA9l");
    BOOST_TEST(found == list({"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"}),
               boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(what_looks_like_one_is_none) {
    // U+0084, U+00A8, U+2027, U+202A, U+2605, and 0x1B, 0x1F
    const std::string text = "\xC2\x84\xC2\xA8\xE2\x80\xA7\xE2\x80\xAA\xE2\x98\x85\x1B\x1F";
    BOOST_TEST(lines_of(text) == list({text}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(no_line_behind_the_last_end) {
    BOOST_TEST(lines_of("").empty());
    BOOST_TEST(lines_of("\n") == list({""}), boost::test_tools::per_element());
    BOOST_TEST(lines_of("a\n\n") == list({"a", ""}), boost::test_tools::per_element());
    BOOST_TEST(lines_of("a\r\n\r\nb\r") == list({"a", "", "b"}), boost::test_tools::per_element());
    BOOST_TEST(lines_of("\r\r\n\n") == list({"", "", ""}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_cut_sequence_at_the_end_is_no_end_of_line) {
    BOOST_TEST(lines_of("a\xE2\x80") == list({"a\xE2\x80"}), boost::test_tools::per_element());
    BOOST_TEST(lines_of("a\xC2") == list({"a\xC2"}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(slices) {
    const std::string five = "1\r\n2\r3\n4\n5\n";
    BOOST_TEST(slice_lines(five, 0, 2000) == "1\n2\n3\n4\n5");
    BOOST_TEST(slice_lines(five, 0, 5) == "1\n2\n3\n4\n5");
    BOOST_TEST(slice_lines(five, 0, 3) == "1\n2\n3\n\n[... 2 more lines. Use offset=3 to read more.]");
    BOOST_TEST(slice_lines(five, 1, 2) == "2\n3\n\n[... 2 more lines. Use offset=3 to read more.]");
    BOOST_TEST(slice_lines(five, 4, 1) == "5");
    BOOST_TEST(slice_lines(five, 3, INT64_MAX) == "4\n5");
    BOOST_TEST(slice_lines(five, 5, 1) == "[End of file]");
    BOOST_TEST(slice_lines(five, INT64_MAX, INT64_MAX) == "[End of file]");
    BOOST_TEST(slice_lines("", 0, 2000) == "[End of file]");
    BOOST_TEST(slice_lines("\n", 0, 2000) == "");
    BOOST_TEST(slice_lines("\n\n\nx", 0, 2) == "\n\n\n[... 2 more lines. Use offset=2 to read more.]");
    BOOST_TEST(slice_lines("kept\n", 0, 2000) == "kept");
}

BOOST_AUTO_TEST_CASE(kinds_by_extension) {
    for (const char* name :
         {"a.py", "/w/x.TXT", "x.tar.json", "..md", "dir.d/f.ipynb/x.c", "a.py/", "a.webmanifest"}) {
        BOOST_TEST((kind_of(name) == file_kind::text), name);
    }
    for (const char* name : {"p.pdf", "/a/B.Pdf", ".x.pdf"}) {
        BOOST_TEST((kind_of(name) == file_kind::pdf), name);
    }
    for (const char* name :
         {"", "/", ".env", ".pdf", "a.", "Makefile", "x.dat", "a.py/README", "py", "a.py.", ".."}) {
        BOOST_TEST((kind_of(name) == file_kind::unknown), name);
    }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace sandboxd::text
