#include "session/file_service.hpp"
#include "session/file_texts.hpp"

#include <boost/test/unit_test.hpp>

// Contract 3.1, 3.3 to 3.11 and 2.11 above the sandbox: texts, paths, events, ceiling, healing.

namespace sandboxd::session {

namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;
using test::file_service;

settings small_limit() {
    auto config = test::test_settings();
    config.max_read_bytes = 1024;
    return config;
}

void check_event(file_service& of, const char* op, const std::string& target, bool ok,
                 const std::string& detail) {
    const auto event = of.last_event();
    BOOST_TEST(event.op == op);
    BOOST_TEST(event.target == target);
    BOOST_TEST(event.ok == ok);
    BOOST_TEST(event.detail == detail);
}

} // namespace

BOOST_AUTO_TEST_SUITE(files)

BOOST_AUTO_TEST_CASE(joined_paths) {
    BOOST_TEST(joined_path("/workspace", "notes.md") == "/workspace/notes.md");
    BOOST_TEST(joined_path("/workspace", "./r/../s") == "/workspace/r/../s");
    BOOST_TEST(joined_path("/workspace/", "a//b/./c/") == "/workspace/a/b/c");
    BOOST_TEST(joined_path("/", "a") == "/a");
    BOOST_TEST(joined_path("/workspace", "/tmp//x/./y") == "/tmp//x/./y");
}

BOOST_AUTO_TEST_CASE(read_answers) {
    file_service on(small_limit());
    on.put("a.txt", "1\n2\r\n3\n");
    BOOST_TEST(on.read("a.txt") == "1\n2\n3");
    check_event(on, "read", "a.txt", true, "5 chars");
    BOOST_TEST(on.read("/workspace/a.txt", 1, 1) == "2\n\n[... 1 more lines. Use offset=2 to read more.]");
    BOOST_TEST(on.read("a.txt", 3) == "[End of file]");
    BOOST_TEST(on.read("missing") == "Error: File 'missing' not found");
    check_event(on, "read", "missing", false, "31 chars");
    BOOST_TEST(on.read("/workspace") == "Error: File '/workspace' not found: Is a directory");
    BOOST_TEST(on.read("") == "Error: File '' not found: The path is empty");
    BOOST_TEST(on.read("a\0b"s) == "Error: File 'a\0b' not found: The path holds a NUL"s);
    on.put("empty", "");
    BOOST_TEST(on.read("empty") == "[End of file]");
    check_event(on, "read", "empty", true, "13 chars");
    on.put("e.pdf", "");
    BOOST_TEST(on.read("e.pdf") == "[End of file]");
    on.put("full", std::string(1024, 'x'));
    BOOST_TEST(on.read("full") == std::string(1024, 'x'));
    on.put("large", std::string(1025, 'x'));
    BOOST_TEST(on.read("large") ==
               "[Error: File is 1025 bytes, over the 1024-byte read limit. Use execute() to read a "
               "slice of it, for example with sed -n '1,200p' and its path.]");
    on.put("x.bin", "\x89PNG\r\n\x1A\n\0\0\xFF\xFE\xFD"s);
    BOOST_TEST(on.read("x.bin") == "[Error: [Binary File]]");
    on.put("l1.txt", "caf\xE9");
    BOOST_TEST(on.read("l1.txt") == "café");
    check_event(on, "read", "l1.txt", true, "4 chars");
    on.put("x.pdf", "no pdf");
    BOOST_TEST(on.read("x.pdf").starts_with("[Error: Failed to parse PDF: "));
}

BOOST_AUTO_TEST_CASE(a_large_text_is_decoded_by_a_worker) {
    file_service on;
    std::string lines;
    for (int i = 0; i < 50'000; ++i) {
        lines += "line " + std::to_string(i) + "\n";
    }
    on.put("large.txt", lines);
    BOOST_TEST(on.read("large.txt", 49'999) == "line 49999");
    BOOST_TEST(on.read("large.txt", 0, 1) == "line 0\n\n[... 49999 more lines. Use offset=1 to read more.]");
}

BOOST_AUTO_TEST_CASE(bytes) {
    file_service on(small_limit());
    std::string all;
    for (int c = 0; c < 256; ++c) {
        all += static_cast<char>(c);
    }
    on.put("all", all);
    BOOST_TEST(on.get(on.files().read_bytes("s", "all")).value() == all);
    check_event(on, "read_bytes", "all", true, "256 bytes");
    for (const char* path : {"missing", "/workspace", ""}) {
        BOOST_TEST(on.get(on.files().read_bytes("s", path)).value() == "");
    }
    on.put("large", std::string(1025, 'x'));
    BOOST_TEST(on.get(on.files().read_bytes("s", "large")).value() == "");
    check_event(on, "read_bytes", "large", false, "0 bytes");
}

BOOST_AUTO_TEST_CASE(writes) {
    file_service on;
    const auto made = on.get(on.files().write("s", "deep/er/./f", "abc")).value();
    BOOST_TEST(made.path.value() == "/workspace/deep/er/f");
    BOOST_TEST(!made.failure.has_value());
    check_event(on, "write", "deep/er/./f", true, "3 bytes");
    const auto failure = [&on](const std::string& path) {
        const auto answer = on.get(on.files().write("s", path, "x")).value();
        BOOST_TEST(!answer.path.has_value());
        return answer.failure.value_or("none");
    };
    BOOST_TEST(failure("deep") == "Failed to write file: Is a directory");
    BOOST_TEST(failure("") == "Failed to write file: The path is empty");
    BOOST_TEST(failure("a\0b"s) == "Failed to write file: The path holds a NUL");
    BOOST_TEST(failure("deep/er/f/x") == "Failed to create directory: Not a directory");
    check_event(on, "write", "deep/er/f/x", false, "Failed to create directory: Not a directory");
    BOOST_TEST(on.read("deep/er/f") == "abc");
}

BOOST_AUTO_TEST_CASE(edits) {
    file_service on(small_limit());
    on.put("a.txt", "one two two\n");
    const auto once = on.edit("a.txt", "one", "1\n1");
    BOOST_TEST(once.path.value() == "/workspace/a.txt");
    BOOST_TEST(once.occurrences.value() == 1);
    BOOST_TEST(!once.failure.has_value());
    check_event(on, "edit", "a.txt", true, "1 replaced");
    const auto twice = on.edit("a.txt", "two", "2");
    BOOST_TEST(!twice.path.has_value());
    BOOST_TEST(!twice.occurrences.has_value());
    BOOST_TEST(twice.failure.value() ==
               "String 'two' found 2 times. Pass replace_all=True to replace each, or more "
               "context to single one out.");
    check_event(on, "edit", "a.txt", false, "String found 2 times");
    BOOST_TEST(on.edit("a.txt", "two", "2", true).occurrences.value() == 2);
    BOOST_TEST(on.read("a.txt") == "1\n1 2 2");
    BOOST_TEST(on.edit("a.txt", "secret", "x").failure.value() == "String 'secret' not found in file");
    check_event(on, "edit", "a.txt", false, "String not found in file");
    BOOST_TEST(on.edit("missing", "a", "b").failure.value() == "File 'missing' not found");
    BOOST_TEST(on.edit("/workspace", "a", "b").failure.value() ==
               "File '/workspace' not found: Is a directory");
    BOOST_TEST(on.edit("", "a", "b").failure.value() == "File '' not found: The path is empty");
    on.put("large", std::string(1025, 'x'));
    BOOST_TEST(on.edit("large", "a", "b").failure.value().find("over the 1024-byte read limit") !=
               std::string::npos);
    on.put("x.bin", "\xFF\xFE\0\1"s);
    BOOST_TEST(on.edit("x.bin", "a", "b").failure.value() == "[Error: [Binary File]]");
    on.put("l1.txt", "caf\xE9 x");
    BOOST_TEST(on.edit("l1.txt", "x", "y").occurrences.value() == 1);
    BOOST_TEST(on.get(on.files().read_bytes("s", "l1.txt")).value() == "caf\xE9 y");
    on.put("crlf", "a\r\nb\r\n");
    BOOST_TEST(on.edit("crlf", "a\nb", "a\nc").occurrences.value() == 1);
    BOOST_TEST(on.get(on.files().read_bytes("s", "crlf")).value() == "a\r\nc\r\n");
}

BOOST_AUTO_TEST_CASE(the_empty_text_and_the_empty_file) {
    file_service on;
    on.put("two", "éb");
    BOOST_TEST(on.edit("two", "", "-").failure.value().starts_with("String '' found 3 times. "));
    BOOST_TEST(on.edit("two", "", "-", true).occurrences.value() == 3);
    BOOST_TEST(on.read("two") == "-é-b-");
    on.put("none", "");
    BOOST_TEST(on.edit("none", "a", "b").failure.value() == "String 'a' not found in file");
    BOOST_TEST(on.edit("none", "", "b").occurrences.value() == 1);
    BOOST_TEST(on.read("none") == "b");
}

BOOST_AUTO_TEST_CASE(looking_around) {
    file_service on;
    on.put("src/a.py", "import os\n# needle\n");
    on.put(".hidden/b.py", "needle too\n");
    on.put("z", "");
    BOOST_TEST(on.get(on.files().exists("s", "z")).value());
    check_event(on, "exists", "z", true, "found");
    BOOST_TEST(!on.get(on.files().exists("s", "src")).value());
    check_event(on, "exists", "src", true, "missing");
    const auto list = on.get(on.files().ls("s", ".")).value();
    BOOST_TEST_REQUIRE(list.entries.size() == 3U);
    BOOST_TEST(list.entries[0].path == "./.hidden");
    BOOST_TEST(list.entries[2].path == "./z");
    check_event(on, "ls", ".", true, "3 entries");
    BOOST_TEST(on.get(on.files().ls("s", "z")).value().entries.empty());
    BOOST_TEST(on.get(on.files().ls("s", "")).value().entries.empty());
    for (const char* root : {"", "/", "."}) {
        const auto found = on.get(on.files().glob("s", {"**/*.py", root})).value();
        BOOST_TEST_REQUIRE(found.entries.size() == 2U);
        BOOST_TEST(found.entries[1].path == "src/a.py");
        check_event(on, "glob", "**/*.py in "s + root, true, "2 matches");
    }
    const auto hits = on.get(on.files().grep("s", {"needle", std::nullopt, std::nullopt, true})).value();
    BOOST_TEST_REQUIRE(hits.matches.size() == 1U);
    BOOST_TEST(hits.matches[0].path == "./src/a.py");
    BOOST_TEST(hits.matches[0].line_number == 2U);
    BOOST_TEST(hits.matches[0].line == "# needle");
    check_event(on, "grep", "needle", true, "1 matches");
    BOOST_TEST(on.get(on.files().grep("s", {"needle", "", std::nullopt, false})).value().matches.size() ==
               2U);
    const auto bad = on.get(on.files().grep("s", {"\\(", std::nullopt, std::nullopt, true})).value();
    BOOST_TEST(bad.failure.value().starts_with("Error: "));
    BOOST_TEST(bad.matches.empty());
    BOOST_TEST(!on.last_event().ok);
}

BOOST_AUTO_TEST_CASE(a_dead_sandbox_is_healed_first) {
    file_service on;
    on.put("a", "x");
    BOOST_REQUIRE(on.host().kill("s"));
    // No workspace: the files died with it, and [A] heals all the same (N16.1).
    BOOST_TEST(on.read("a") == "Error: File 'a' not found");
    BOOST_TEST(on.host().builds() == 2U);
    BOOST_REQUIRE(on.host().kill("s"));
    on.host().fail_next_build("no such image");
    const auto refused = on.get(on.files().read("s", {"a", 0, 1}));
    BOOST_TEST((refused.error().code == errc::start_failed));
    const auto events = on.get(on.sessions().events("s", 0))->latest_seq;
    BOOST_TEST(events == 2); // the refusal is not logged
}

BOOST_AUTO_TEST_CASE(dying_in_the_middle_is_an_answer) {
    file_service on;
    on.put("a", "x");
    on.host().delay_files(2s);
    auto pending = on.start(on.files().read("s", {"a", 0, 1}));
    auto grep = on.start(on.files().grep("s", {"x", std::nullopt, std::nullopt, true}));
    on.until([&on] { return on.host().most_at_files() == 2; });
    BOOST_REQUIRE(on.host().kill("s"));
    BOOST_TEST(on.ready(pending).value() == "[Error reading file: the sandbox has ended]");
    BOOST_TEST(on.ready(grep).value().failure.value() == "Error: the sandbox has ended");
}

BOOST_AUTO_TEST_CASE(closing_ends_what_is_pending) {
    file_service on;
    on.host().delay_files(3s);
    auto read = on.start(on.files().read("s", {"a", 0, 1}));
    auto first = on.start(on.files().write("s", "f", "1"));
    auto second = on.start(on.files().write("s", "f", "2")); // waits for the first
    on.until([&on] { return on.host().most_at_files() == 2; });
    BOOST_REQUIRE(on.get(on.sessions().close("s", false)).has_value());
    BOOST_TEST(on.ready(read).value() == "[Error reading file: Session s was closed]");
    BOOST_TEST(on.ready(first).value().failure.value() == "Failed to write file: Session s was closed");
    BOOST_TEST(on.ready(second).value().failure.value() == "Failed to write file: Session s was closed");
    const auto gone = on.get(on.files().exists("s", "f"));
    BOOST_TEST((gone.error().code == errc::not_found));
    BOOST_TEST(gone.error().message == "No such session: s");
}

BOOST_AUTO_TEST_CASE(the_ceiling_is_a_timeout_and_logged) {
    auto config = test::test_settings();
    config.execute_timeout = 1;
    file_service on(config);
    on.put("a", "x");
    on.host().delay_files(1500ms);
    auto read = on.start(on.files().read("s", {"a", 0, 1}));
    auto edit = on.start(on.files().edit("s", {"a", "x", "y", false}));
    auto waiting = on.start(on.files().write("s", "./a", "z")); // behind the edit
    for (const auto& how : {on.ready(read).error(), on.ready(edit).error(), on.ready(waiting).error()}) {
        BOOST_TEST((how.code == errc::timeout));
        BOOST_TEST(how.message == "The operation outlasted the service ceiling of 1 seconds");
    }
    const auto event = on.last_event();
    BOOST_TEST(!event.ok);
    BOOST_TEST(event.detail == "");
    BOOST_TEST(event.duration_ms >= 1000.0);
}

BOOST_AUTO_TEST_CASE(changes_of_one_path_are_one_after_the_other) {
    file_service on;
    on.put("f", std::string(40, '.'));
    on.host().delay_files(5ms);
    std::vector<std::shared_ptr<std::optional<result<edit_answer>>>> all;
    for (int i = 0; i < 20; ++i) {
        const auto path = i % 2 == 0 ? "f" : "/workspace/x/.././f";
        all.push_back(on.start(on.files().edit("s", {path, ".", "-", true})));
    }
    std::size_t made = 0;
    for (auto& one : all) {
        made += on.ready(one)->occurrences.has_value() ? 1 : 0;
    }
    BOOST_TEST(made == 1U); // the others found nothing left to replace
    BOOST_TEST(on.host().most_at_files() == 1U);
    on.host().delay_files(2s);
    auto other = on.start(on.files().write("s", "g", "x"));
    auto same = on.start(on.files().write("s", "h", "x"));
    BOOST_TEST(!on.ready(other)->failure.has_value());
    BOOST_TEST(!on.ready(same)->failure.has_value());
    BOOST_TEST(on.host().most_at_files() == 2U);
}

BOOST_AUTO_TEST_CASE(a_kind_without_files_says_so) {
    const auto host = std::make_shared<test::fake_host>();
    test::service on(host, store::create_memory_store());
    on.open("s");
    const auto refused = on.get(on.sessions().files().exists("s", "a"));
    BOOST_TEST((refused.error().code == errc::unsupported));
    BOOST_TEST(refused.error().message == "fake cannot look up files");
    BOOST_TEST((on.get(on.sessions().files().read("t", {"a", 0, 1})).error().code == errc::not_found));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace sandboxd::session
