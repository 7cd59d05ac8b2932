#include "hostfs/paths.hpp"

#include <boost/test/unit_test.hpp>

using namespace sandboxd;
using namespace sandboxd::hostfs;
using namespace std::string_view_literals;

namespace {

refusal refused(std::string_view given, std::string_view work_dir = "/workspace") {
    const auto parsed = parse_native(given, work_dir);
    BOOST_REQUIRE_MESSAGE(!parsed, given);
    return parsed.error().why;
}

std::string relative(std::string_view given, std::string_view work_dir = "/workspace") {
    return parse_native(given, work_dir).value().relative;
}

std::string archived(std::string_view given, std::string_view work_dir = "/workspace") {
    return parse_archive(given, work_dir).value();
}

} // namespace

BOOST_AUTO_TEST_SUITE(hostfs_paths)

BOOST_AUTO_TEST_CASE(a_native_path_is_absolute_and_below_the_work_directory) {
    BOOST_TEST(relative("/workspace") == "");
    BOOST_TEST(relative("/workspace/") == "");
    BOOST_TEST(relative("///workspace/a") == "a");
    BOOST_TEST(relative("/workspace//a///b/") == "a/b");
    BOOST_TEST(relative("/workspace/.hidden/..a/a..") == ".hidden/..a/a..");
    BOOST_TEST(relative("/data/agent//files/a", "/data/agent/files/") == "a");
    BOOST_TEST(relative("/etc/passwd", "/") == "etc/passwd");
    const auto parsed = parse_native("//"
                                     "/workspace//a/",
                                     "/workspace");
    BOOST_TEST(parsed.value().given == "///workspace//a/");
    BOOST_TEST(parsed.value().normalized == "/workspace/a");
}

BOOST_AUTO_TEST_CASE(what_the_text_alone_refuses) {
    for (const auto given : {""sv, "a"sv, "workspace/a"sv, "./a"sv, "/workspace/a\0b"sv, "/etc\0"sv}) {
        BOOST_TEST((refused(given) == refusal::bad_value), given);
    }
    for (const auto given :
         {"/"sv, "//"sv, "/etc/passwd"sv, "/workspacex/a"sv, "/workspac"sv, "//workspace/a"sv,
          "/a/../workspace/a"sv, "/workspace/../workspace/a"sv, "/workspace/a/.."sv, "/workspace/./a"sv,
          "/./workspace/a"sv, "/workspace/a/."sv, "/workspace/a/../b"sv}) {
        BOOST_TEST((refused(given) == refusal::ask_sandbox), given);
    }
    BOOST_TEST(parse_native("a", "/workspace").error().message == "The path must be absolute: 'a'");
    BOOST_TEST(parse_native("/etc", "/workspace").error().message ==
               "The path is outside the work directory: '/etc'");
}

BOOST_AUTO_TEST_CASE(a_path_no_command_could_name_is_not_walked) {
    const auto long_one = [](std::size_t size) {
        std::string text = "/workspace";
        while (text.size() + 2 <= size) {
            text += "/d";
        }
        return text;
    };
    BOOST_TEST(relative(long_one(longest_path)).size() == longest_path - 11);
    BOOST_TEST(archived(long_one(longest_path)).size() == longest_path - 11);
    const auto above = long_one(longest_path + 2);
    BOOST_TEST((refused(above) == refusal::ask_sandbox));
    BOOST_TEST(parse_native(above, "/workspace").error().message == "The path is too long for the service");
    BOOST_TEST((parse_archive(above, "/workspace").error().code == errc::invalid));
    BOOST_TEST(parse_archive(above, "/workspace").error().message == "The path is too long");
}

BOOST_AUTO_TEST_CASE(an_archive_path_is_taken_below_the_workspace) {
    BOOST_TEST(archived("") == "");
    BOOST_TEST(archived(".") == "");
    BOOST_TEST(archived("/workspace") == "");
    BOOST_TEST(archived("/workspace/./src//app.py") == "src/app.py");
    BOOST_TEST(archived("/./workspace/a") == "a");
    BOOST_TEST(archived("/././/workspace/.") == "");
    BOOST_TEST(archived("./workspace/a") == "workspace/a");
    BOOST_TEST(archived("src/app.py/") == "src/app.py");
    BOOST_TEST(archived("/etc/passwd") == "etc/passwd");
    BOOST_TEST(archived("/workspacex/a") == "workspacex/a");
    BOOST_TEST(archived("//workspace/a") == "workspace/a");
}

BOOST_AUTO_TEST_CASE(an_archive_path_never_climbs) {
    for (const auto given : {".."sv, "a/../b"sv, "/workspace/.."sv, "../etc/passwd"sv, "/.."sv}) {
        const auto parsed = parse_archive(given, "/workspace");
        BOOST_REQUIRE_MESSAGE(!parsed, given);
        BOOST_TEST((parsed.error().code == errc::invalid));
        BOOST_TEST(parsed.error().message.find("outside the workspace") != std::string::npos);
    }
    BOOST_TEST((parse_archive("a\0"sv, "/workspace").error().code == errc::invalid));
}

BOOST_AUTO_TEST_SUITE_END()
