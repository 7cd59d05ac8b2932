#include "cli/arguments.hpp"
#include "cli/run.hpp"
#include "cli/texts.hpp"
#include "config/table.hpp"
#include "sandboxd/version.hpp"

#include <boost/test/unit_test.hpp>

#include <sstream>
#include <vector>

BOOST_AUTO_TEST_SUITE(cli)
using namespace sandboxd::cli;
namespace config = sandboxd::config;

namespace {

command parsed(std::vector<std::string_view> words) {
    return parse(std::span<const std::string_view>(words));
}

std::string refused(std::vector<std::string_view> words) {
    const auto got = parsed(std::move(words));
    BOOST_REQUIRE(std::holds_alternative<usage_error>(got));
    return std::get<usage_error>(got).text;
}

options options_of(std::vector<std::string_view> words) {
    const auto got = parsed(std::move(words));
    BOOST_REQUIRE(std::holds_alternative<serve>(got));
    return std::get<serve>(got).with;
}

config::loaded_settings loaded(config::environment variables) {
    config::host_facts host;
    host.cores = 4;
    host.current_dir = "/here";
    host.read_file = [](const std::string&, std::size_t) { return sandboxd::result<std::string>("x"); };
    variables.emplace("HOME", "/h");
    auto got = config::load(variables, std::nullopt, {}, host);
    BOOST_REQUIRE_MESSAGE(got.has_value(), (got ? "" : got.error().message));
    return *got;
}

std::string line_of(const std::string& text, const std::string& name) {
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) {
        if (line.starts_with(name + " ")) {
            return line;
        }
    }
    return "(no line)";
}

} // namespace

BOOST_AUTO_TEST_CASE(commands) {
    BOOST_TEST(std::holds_alternative<serve>(parsed({})));
    BOOST_TEST(std::holds_alternative<serve>(parsed({"serve"})));
    BOOST_TEST(std::holds_alternative<show_config>(parsed({"config"})));
    BOOST_TEST(std::holds_alternative<show_help>(parsed({"--help"})));
    BOOST_TEST(std::holds_alternative<show_help>(parsed({"serve", "-h", "--nonsense"})));
    BOOST_TEST(std::holds_alternative<show_version>(parsed({"--version"})));
    const char* const argv[]{"sandboxd", "config", "--backend", "oci"};
    const auto from_main = parse(4, argv);
    BOOST_REQUIRE(std::holds_alternative<show_config>(from_main));
    BOOST_TEST((std::get<show_config>(from_main).with.given.backend == "oci"));
    BOOST_TEST(std::holds_alternative<serve>(parse(0, argv)));
}

BOOST_AUTO_TEST_CASE(options_of_a_command) {
    const auto got =
        options_of({"--listen", "[::1]:8080", "serve", "--config=a=b.jsonc", "--backend", "oci"});
    BOOST_TEST((got.given.host == "::1"));
    BOOST_TEST((got.given.port == 8080));
    BOOST_TEST((got.config_file == "a=b.jsonc"));
    BOOST_TEST((got.given.backend == "oci"));
    BOOST_TEST((options_of({"--listen", "a:1", "--listen", "b:2"}).given.host == "b"));
    BOOST_TEST(!options_of({}).given.port.has_value());
}

BOOST_AUTO_TEST_CASE(usage_errors) {
    BOOST_TEST(refused({"srve"}) ==
               "sandboxd: there is no command 'srve'. Did you mean 'serve'? See sandboxd --help.");
    BOOST_TEST(refused({"xyzzy"}) == "sandboxd: there is no command 'xyzzy'. See sandboxd --help.");
    BOOST_TEST(refused({"--lisen", "x"}) ==
               "sandboxd: there is no option '--lisen'. Did you mean '--listen'? See sandboxd --help.");
    BOOST_TEST(refused({"--listen"}) == "sandboxd: --listen needs a value. See sandboxd --help.");
    BOOST_TEST(refused({"--config="}) == "sandboxd: --config needs a value. See sandboxd --help.");
    BOOST_TEST(refused({"--help=x"}) == "sandboxd: --help takes no value. See sandboxd --help.");
    BOOST_TEST(refused({"serve", "config"}) ==
               "sandboxd: one command at a time: 'serve' or 'config'. See sandboxd --help.");
    BOOST_TEST(refused({"--listen", "8080"}) == "sandboxd: --listen '8080' is not HOST:PORT, such as "
                                                "127.0.0.1:8080 or [::1]:8080. See sandboxd --help.");
    BOOST_TEST(refused({"-x"}) == "sandboxd: there is no option '-x'. See sandboxd --help.");
}

BOOST_AUTO_TEST_CASE(addresses_to_listen_on) {
    BOOST_TEST((parse_listen("127.0.0.1:8080") == endpoint{"127.0.0.1", 8080}));
    BOOST_TEST((parse_listen("[::1]:8080") == endpoint{"::1", 8080}));
    BOOST_TEST((parse_listen("localhost:0") == endpoint{"localhost", 0}));
    BOOST_TEST((parse_listen(":8080") == endpoint{"", 8080}));
    BOOST_TEST((parse_listen("[::]:65535") == endpoint{"::", 65535}));
    for (const char* bad : {"", "x", "x:", "x:y", "x:65536", "x:-1", "x:+1", "::1:8080", "[::1]", "[x]:1",
                            "a b:1", "x:123456", "[::1:8080", "http://x:1"}) {
        BOOST_TEST(!parse_listen(bad).has_value(), bad);
    }
}

BOOST_AUTO_TEST_CASE(the_help_names_every_command_and_option) {
    const std::string text = help_text();
    for (const char* word : {"serve", "config", "--config FILE", "--listen HOST:PORT", "--backend NAME",
                             "--help", "--version", "SANDBOXD_TOKEN", "Exit status: 0"}) {
        BOOST_TEST((text.find(word) != std::string::npos), word);
    }
    BOOST_TEST(text.ends_with('\n'));
}

BOOST_AUTO_TEST_CASE(the_version) {
    BOOST_TEST(version_text() ==
               std::string("sandboxd ") + sandboxd::version() + " (" + sandboxd::commit() + ")\n");
}

BOOST_AUTO_TEST_CASE(the_settings_in_force) {
    const std::string text = config_text(loaded({{"SANDBOXD_TOKEN", "very-secret"},
                                                 {"SANDBOXD_RUNTIMES", "host=host"},
                                                 {"SANDBOXD_MAX_SESSIONS", ""}}));
    BOOST_TEST((text.find("very-secret") == std::string::npos));
    BOOST_TEST(line_of(text, "token") == "token                    environment  (hidden)");
    BOOST_TEST(line_of(text, "runtimes") == "runtimes                 environment  host=host");
    BOOST_TEST(line_of(text, "default_runtime") == "default_runtime          default      host");
    BOOST_TEST(line_of(text, "max_sessions") == "max_sessions             environment  (no ceiling)");
    BOOST_TEST(line_of(text, "backend") == "backend                  default      (chosen at the start)");
    BOOST_TEST(line_of(text, "tmpfs_size") == "tmpfs_size               default      64m");
    BOOST_TEST(line_of(text, "workspace_root") ==
               "workspace_root           default      (workspaces end with their sandbox)");
    BOOST_TEST(line_of(text, "cpu_shares") == "cpu_shares               default      (none)");
    BOOST_TEST(line_of(text, "cpus") == "cpus                     default      2.0");
    BOOST_TEST(line_of(text, "network_mode") == "network_mode             default      none");
    BOOST_TEST(line_of(text, "uid_range") == "uid_range                default      0x10000000-0x6FFFFFFF");
    BOOST_TEST(line_of(text, "io_threads") == "io_threads               default      4");
    BOOST_TEST(line_of(text, "prewarm") == "prewarm                  default      true");
    BOOST_TEST(line_of(text, "state_dir") ==
               "state_dir                default      /h/.local/state/sandboxd");
    std::size_t lines = 0;
    for (const char c : text) {
        lines += c == '\n' ? 1 : 0;
    }
    BOOST_TEST(lines == config::table().size());
}

BOOST_AUTO_TEST_SUITE_END()
