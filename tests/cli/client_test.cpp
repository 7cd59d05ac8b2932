#include "cli/arguments.hpp"
#include "cli/local_files.hpp"
#include "cli/terminal.hpp"

#include <boost/test/unit_test.hpp>

using namespace sandboxd::cli;

namespace {

client_call call_of(std::vector<std::string_view> words) {
    const auto parsed = parse(std::span<const std::string_view>(words));
    BOOST_TEST_REQUIRE(std::holds_alternative<client_call>(parsed));
    return std::get<client_call>(parsed);
}

std::string refused(std::vector<std::string_view> words) {
    const auto parsed = parse(std::span<const std::string_view>(words));
    BOOST_TEST_REQUIRE(std::holds_alternative<usage_error>(parsed));
    return std::get<usage_error>(parsed).text;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_programs_words_are_its_own) {
    const auto call = call_of({"exec", "--env", "A=1", "--env=B=2", "demo", "ls", "--json", "-l", "--", "x"});
    const std::vector<std::string> words{"demo", "ls", "--json", "-l", "--", "x"};
    BOOST_TEST(call.words == words, boost::test_tools::per_element());
    BOOST_TEST(!call.has("--json"));
    BOOST_TEST(call.given.at("--env").size() == 2U);
    BOOST_TEST(call.value("--env").value() == "B=2");
    const std::vector<std::string> dashed{"demo", "--json"};
    BOOST_TEST(call_of({"exec", "demo", "--", "--json"}).words == dashed, boost::test_tools::per_element());
    BOOST_TEST(call_of({"exec", "demo", "--json", "ls"}).has("--json"));
}

BOOST_AUTO_TEST_CASE(options_of_the_commands) {
    BOOST_TEST(call_of({"cp", "-r", "a", "b:c"}).has("--recursive"));
    BOOST_TEST(call_of({"events", "-f", "a"}).has("--follow"));
    BOOST_TEST(call_of({"cp", "-", "b:c"}).words.front() == "-");
    BOOST_TEST(call_of({"sessions", "--url", "a", "--url=b"}).value("--url").value() == "b");
    BOOST_TEST(call_of({"open", "-h"}).help);
    BOOST_TEST(call_of({"exec", "--help"}).help); // though words are missing
    BOOST_TEST(
        refused({"open", "--runtim", "x"}) ==
        "sandboxd: open has no option '--runtim'. Did you mean '--runtime'? See sandboxd open --help.");
    BOOST_TEST(refused({"open", "--runtime"}) ==
               "sandboxd: --runtime needs a value. See sandboxd open --help.");
    BOOST_TEST(refused({"open", "--runtime="}) ==
               "sandboxd: --runtime needs a value. See sandboxd open --help.");
    BOOST_TEST(refused({"ls", "--json=1", "a"}) ==
               "sandboxd: --json takes no value. See sandboxd ls --help.");
    BOOST_TEST(refused({"ls"}) == "sandboxd: ls needs SESSION[:PATH]. See sandboxd ls --help.");
    BOOST_TEST(refused({"ls", "a", "b"}) ==
               "sandboxd: ls can't make anything of 'b'. See sandboxd ls --help.");
    BOOST_TEST(refused({"--config", "x", "ls"}) ==
               "sandboxd: ls comes first, its options behind it. See sandboxd --help.");
    BOOST_TEST(refused({"exce"}) ==
               "sandboxd: there is no command 'exce'. Did you mean 'exec'? See sandboxd --help.");
}

BOOST_AUTO_TEST_CASE(places) {
    BOOST_TEST(parse_place("demo:a/b").session.value() == "demo");
    BOOST_TEST(parse_place("demo:a/b").path == "a/b");
    BOOST_TEST(parse_place("demo:").path.empty());
    BOOST_TEST(parse_place("demo:a:b").path == "a:b");
    for (const auto* local : {"demo", "./demo:a", "/x:y", "-", "", ":a"}) {
        BOOST_TEST(!parse_place(local).session.has_value());
        BOOST_TEST(parse_place(local).path == local);
    }
}

BOOST_AUTO_TEST_CASE(texts_for_a_terminal) {
    BOOST_TEST(safe_text("plain \xC3\xBC \xE2\x82\xAC \xF0\x9F\x98\x80") ==
               "plain \xC3\xBC \xE2\x82\xAC \xF0\x9F\x98\x80");
    BOOST_TEST(safe_text("a\x1b[31mb\r\n\t\x7f") == "a\\x1b[31mb\\x0d\\n\\t\\x7f");
    BOOST_TEST(safe_text("\xC2\x9B") == "\\x9b");             // a control sequence in one character
    BOOST_TEST(safe_text("\xE2\x80\xAEgpj") == "\\u202egpj"); // right to left from here on
    BOOST_TEST(safe_text("\xFF\xC3") == "\\xff\\xc3");
    BOOST_TEST(safe_text(std::string_view("\0", 1)) == "\\x00");
    BOOST_TEST(size_text(1023) == "1023");
    BOOST_TEST(size_text(1536) == "1.5 KiB");
    BOOST_TEST(size_text(20U << 20U) == "20.0 MiB");
}

BOOST_AUTO_TEST_CASE(names_of_files) {
    BOOST_TEST(local::base_name("a/b/") == "b");
    BOOST_TEST(local::base_name("b") == "b");
    BOOST_TEST(local::base_name("/").empty());
    BOOST_TEST(local::base_name("a/..").empty());
    BOOST_TEST(local::joined("a", "b") == "a/b");
    BOOST_TEST(local::joined("a/", "b") == "a/b");
}

BOOST_AUTO_TEST_CASE(every_command_has_its_help) {
    for (const auto name : client_command_names()) {
        const auto text = client_help_text(*find_client_command(name));
        BOOST_TEST(text.find("Usage: sandboxd " + std::string(name)) != std::string::npos);
        BOOST_TEST(text.find("\nExample:\n  sandboxd " + std::string(name)) != std::string::npos);
        for (const auto& flag : common_flags()) {
            BOOST_TEST(text.find("  " + std::string(flag.name)) != std::string::npos);
        }
    }
}
