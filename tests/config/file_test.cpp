#include "config/fixture.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <unistd.h>

BOOST_AUTO_TEST_SUITE(config_file)
using namespace config_test;

namespace {

result<loaded_settings> from_file(const std::string& text, environment variables = {}) {
    variables.emplace("HOME", "/h");
    return load(variables, file_text{"sandboxd.jsonc", text}, {}, made_up_host());
}

} // namespace

BOOST_AUTO_TEST_CASE(comments_trailing_commas_and_native_types) {
    const auto got = from_file(R"(// the service
{
    /* a "token": "x" in a comment is none */
    "token": "s3cret",
    "max_sessions": null, "max_open_sessions": 5,
    "cpus": 1.5, "idle_timeout": 60, "prewarm": false, "ui_enabled": "yes",
    "runtimes": { "host": "host", "py": {"image": "python", "cpus": 2, "mem_limit": "2g",}, },
    "uid_range": "100000-200000", // with a tail
}
)");
    const settings values = values_of(got);
    BOOST_TEST(values.token == "s3cret");
    BOOST_TEST(!values.max_sessions.has_value());
    BOOST_TEST((values.max_open_sessions == 5));
    BOOST_TEST((values.cpus == 1.5));
    BOOST_TEST(values.idle_timeout == 60);
    BOOST_TEST(values.prewarm == false);
    BOOST_TEST(values.ui_enabled == true);
    BOOST_TEST(values.runtimes.size() == 2U);
    BOOST_TEST(values.runtimes[1].alias == "py");
    BOOST_TEST((values.runtimes[1].cpus == 2.0));
    BOOST_TEST(values.default_runtime == "host");
    BOOST_TEST((got->sources[index_of("cpus")] == source::file));
    BOOST_TEST((got->sources[index_of("port")] == source::fallback));
}

BOOST_AUTO_TEST_CASE(the_environment_wins) {
    const auto got = from_file(R"({"token":"a","port":1,"host":"::"})", {{"SANDBOXD_PORT", "2"}});
    BOOST_TEST(values_of(got).port == 2);
    BOOST_TEST(values_of(got).host == "::");
    BOOST_TEST((got->sources[index_of("port")] == source::environment));
}

BOOST_AUTO_TEST_CASE(runtimes_as_compact_text) {
    BOOST_TEST(values_of(from_file(R"({"token":"a","runtimes":"h=host,p=py"})")).runtimes.size() == 2U);
}

BOOST_AUTO_TEST_CASE(faults_name_file_place_and_key) {
    BOOST_TEST(message_of(from_file("{\n  \"max_sesions\": 3\n}")) ==
               "sandboxd.jsonc:2:3: there is no setting 'max_sesions'. Did you mean 'max_sessions'?");
    BOOST_TEST(message_of(from_file("{\"zzzzzzzzzz\": 3}")) ==
               "sandboxd.jsonc:1:2: there is no setting 'zzzzzzzzzz'.");
    BOOST_TEST(message_of(from_file("{\n  \"token\": \"t\",\n  \"port\": \"x\"\n}")) ==
               "sandboxd.jsonc:3:3: port='x' is not valid: not a whole number");
    BOOST_TEST(message_of(from_file("{\"port\": true}")) ==
               "sandboxd.jsonc:1:2: port must be an integer, not 'true'");
    BOOST_TEST(message_of(from_file("{\"host\": 5}")) == "sandboxd.jsonc:1:2: host must be a text, not '5'");
    BOOST_TEST(message_of(from_file("{\"port\": null}")) ==
               "sandboxd.jsonc:1:2: port must be an integer, not 'null'");
    BOOST_TEST(message_of(from_file("{\"prewarm\": 1}")) ==
               "sandboxd.jsonc:1:2: prewarm must be a boolean, not '1'");
    BOOST_TEST(message_of(from_file("{\"runtimes\": []}")) ==
               "sandboxd.jsonc:1:2: runtimes must be an object of aliases or a text, not '[]'");
    BOOST_TEST(message_of(from_file("{\"token\": 123}")) ==
               "sandboxd.jsonc:1:2: token must be a text, not '***'");
    BOOST_TEST(message_of(from_file("{\"port\": 1, /* again */ \"port\": 2}")) ==
               "sandboxd.jsonc:1:25: port is given twice");
    BOOST_TEST(
        message_of(from_file("{\"token\":\"t\", \"runtimes\": {\"a\":{\"image\":\"x\",\"cpus\":0}}}")) ==
        "sandboxd.jsonc:1:15: runtimes a.cpus='0' is not valid: must be from 0.01 to 65536");
    BOOST_TEST(
        message_of(from_file("{\"token\":\"t\",\n\"max_open_sessions\": 3}")) ==
        "sandboxd.jsonc:2:1: max_open_sessions: max_open_sessions (3) is below max_sessions (20): a resident "
        "session is an open one too");
    BOOST_TEST(message_of(from_file("[]")) == "sandboxd.jsonc:1:1: must be one JSON object of settings");
    BOOST_TEST(message_of(from_file("{\n\"port\": x}")).starts_with("sandboxd.jsonc:2:9: not valid JSON: "));
    BOOST_TEST(message_of(from_file("{\"port\": 1} x")).starts_with("sandboxd.jsonc:1:13: not valid JSON: "));
    BOOST_TEST(message_of(from_file("{\"port\": 1")).starts_with("sandboxd.jsonc:1:11: not valid JSON: "));
    BOOST_TEST(message_of(from_file("")).starts_with("sandboxd.jsonc:1:1: not valid JSON: "));
}

BOOST_AUTO_TEST_CASE(a_real_file_is_read) {
    const auto path = std::filesystem::temp_directory_path() /
                      ("sandboxd-config-test-" + std::to_string(::getpid()) + ".jsonc");
    std::ofstream(path) << "{\"port\": 7}";
    const auto got = open_file(path.string(), this_host());
    std::filesystem::remove(path);
    BOOST_REQUIRE(got.has_value());
    BOOST_TEST(got->text == "{\"port\": 7}");
    BOOST_TEST(got->name == path.string());
    const auto missing = open_file("/nonexistent/x.jsonc", this_host());
    BOOST_TEST(missing.error().message ==
               "--config: '/nonexistent/x.jsonc' can't be read: No such file or directory");
    BOOST_TEST(open_file("/", this_host()).error().message ==
               "--config: '/' can't be read: it is a directory");
}

BOOST_AUTO_TEST_CASE(every_setting_has_its_line_in_the_documentation) {
    std::ifstream file(std::string(SANDBOXD_SOURCE_DIR) + "/docs/configuration.md");
    BOOST_REQUIRE(file.good());
    std::vector<std::string> rows;
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with("| `SANDBOXD_")) {
            rows.push_back(line);
        }
    }
    std::vector<std::string> expected;
    for (const auto& info : table()) {
        expected.push_back(documentation_row(info));
    }
    BOOST_TEST(rows == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(every_setting_has_a_type_and_a_shown_default) {
    for (const auto& info : table()) {
        BOOST_TEST(!type_text(info).empty(), info.name);
        BOOST_TEST(!default_text(info).empty(), info.name);
        BOOST_TEST(!info.summary.empty(), info.name);
    }
    BOOST_TEST(variable_name("max_sessions") == "SANDBOXD_MAX_SESSIONS");
    BOOST_TEST(default_text(*find_setting("cpus")) == "`2.0`");
    BOOST_TEST(default_text(*find_setting("uid_range")) == "`0x10000000-0x6FFFFFFF`");
    settings secret;
    secret.token = "abc";
    BOOST_TEST(value_text(*find_setting("token"), secret) == "(hidden)");
}

BOOST_AUTO_TEST_SUITE_END()
