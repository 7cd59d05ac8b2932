// edit, glob and grep over the real agent, and file operations over a channel that is cut.

#include "agent_fixture.hpp"

#include <boost/test/unit_test.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

using namespace sandboxd;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

struct tree : test::agent_fixture {
    tree() : root(fs::temp_directory_path() / ("tree-" + test::fresh_id())) { fs::create_directories(root); }
    ~tree() { fs::remove_all(root); }

    std::string at(const std::string& name) const { return (root / name).string(); }
    void put(const std::string& name, const std::string& bytes) const {
        fs::create_directories((root / name).parent_path());
        std::ofstream(at(name), std::ios::binary) << bytes;
    }
    std::string bytes_of(const std::string& name) const {
        std::ifstream in(at(name), std::ios::binary);
        return {std::istreambuf_iterator<char>(in), {}};
    }
    result<edit_result> edit(const std::string& path, std::string from, std::string to, bool all = false,
                             bool any = true) {
        edit_request request{path, std::move(from), std::move(to), all, 1'000'000, any};
        return test::get(context, box->edit(std::move(request)));
    }
    /// Paths below the root.
    std::vector<std::string> glob(const std::string& pattern, std::string below = {}) {
        below = below.empty() ? root.string() : below;
        std::vector<std::string> out;
        const auto got = test::get(context, box->glob({pattern, below})).value();
        BOOST_TEST(!got.truncated);
        for (const auto& one : got.entries) {
            BOOST_TEST(one.path.substr(one.path.rfind('/') + 1) == one.name);
            BOOST_TEST(!one.is_dir);
            BOOST_TEST(!one.size);
            out.push_back(one.path.starts_with(root.string()) ? one.path.substr(root.string().size() + 1)
                                                              : one.path);
        }
        return out;
    }
    result<grep_result> search(const std::string& pattern, const std::string& below,
                               std::optional<std::string> only = {}, bool hidden = true) {
        return test::get(context, box->grep({pattern, below, std::move(only), !hidden}));
    }
    /// As a tool prints them, paths below the root.
    std::vector<std::string> lines(const std::string& pattern, std::optional<std::string> only = {},
                                   bool hidden = true) {
        std::vector<std::string> out;
        const auto got = search(pattern, root.string(), std::move(only), hidden).value();
        BOOST_TEST(!got.truncated);
        for (const auto& one : got.matches) {
            out.push_back(one.path.substr(root.string().size() + 1) + ":" + std::to_string(one.line_number) +
                          ":" + one.line);
        }
        return out;
    }
    using list = std::vector<std::string>;

    fs::path root;
};

#define CHECK_LIST(got, ...)                                                                                 \
    do {                                                                                                     \
        const auto value = (got);                                                                            \
        const tree::list expected __VA_ARGS__;                                                               \
        BOOST_TEST(value == expected, boost::test_tools::per_element());                                     \
    } while (false)

} // namespace

BOOST_FIXTURE_TEST_SUITE(agent_files_search, tree)

BOOST_AUTO_TEST_CASE(an_edit_changes_only_what_it_names) {
    put("f", "caf\xe9 one\ntwo\n");
    BOOST_REQUIRE(chmod(at("f").c_str(), 0755) == 0);
    fs::create_symlink("f", root / "link");
    BOOST_TEST(edit(at("link"), "one", "1&\\1$\n/").value().occurrences == 1U);
    BOOST_TEST(bytes_of("f") == "caf\xe9 1&\\1$\n/\ntwo\n");
    BOOST_TEST(fs::is_symlink(root / "link"));
    struct stat status{};
    BOOST_REQUIRE(stat(at("f").c_str(), &status) == 0);
    BOOST_TEST((status.st_mode & 07777) == 0755U);
    BOOST_TEST(edit(at("f"), "o", "0").value().occurrences == 1U);
    BOOST_TEST(edit(at("f"), "missing", "0").value().occurrences == 0U);
    put("g", "a a a");
    BOOST_TEST(edit(at("g"), "a", "b").value().occurrences == 3U);
    BOOST_TEST(bytes_of("g") == "a a a");
    BOOST_TEST(edit(at("g"), "a", std::string(40'000, 'b'), true).value().occurrences == 3U);
    BOOST_TEST(bytes_of("g").size() == 120'002U);
    put("empty", "");
    BOOST_TEST(edit(at("empty"), "a", "b").value().empty);
    put("bin", std::string("\x7f"
                           "ELF\0\xff\xfe\x90 a",
                           10));
    BOOST_TEST(edit(at("bin"), "a", "b", false, false).value().binary);
    BOOST_TEST(edit(at("bin"), " a", "b").value().occurrences == 1U);
    put("large", std::string(1'000'001, 'a'));
    const auto over = edit(at("large"), "b", "c").value();
    BOOST_TEST(over.over_limit);
    BOOST_TEST(over.size.value() == 1'000'001U);
    BOOST_TEST((edit(at("nowhere"), "a", "b").error().code == errc::not_found));
    BOOST_TEST((edit(root.string(), "a", "b").error().code == errc::invalid));
    BOOST_REQUIRE(mkfifo(at("fifo").c_str(), 0600) == 0);
    BOOST_TEST(edit(at("fifo"), "a", "b").error().message == "It is a FIFO, not a file");
}

task<void> edit_in_the_background(std::shared_ptr<sandbox> box, edit_request request, int& done) {
    const auto got = co_await box->edit(std::move(request));
    done += got && got->occurrences == 1 ? 1 : 1'000'000;
}

BOOST_AUTO_TEST_CASE(edits_at_once_all_land) {
    std::string content;
    for (int i = 0; i < 200; ++i) {
        content += "line " + std::to_string(i) + ";\n";
    }
    put("f", content);
    int done = 0;
    for (int i = 0; i < 200; ++i) {
        const auto number = std::to_string(i);
        edit_request request{at("f"), "line " + number + ";", "done " + number + ";", false, 1'000'000, true};
        core::spawn(context.get_executor(), "edit", background,
                    edit_in_the_background(box, std::move(request), done));
    }
    until([&] { return done >= 200; });
    BOOST_TEST(done == 200);
    std::string expected;
    for (int i = 0; i < 200; ++i) {
        expected += "done " + std::to_string(i) + ";\n";
    }
    BOOST_TEST(bytes_of("f") == expected);
}

BOOST_AUTO_TEST_CASE(globs_find_regular_files_at_any_depth) {
    for (const auto* const name : {"a.py", "src/b.py", "src/x/c.py", ".h/d.py", "e.txt", "src/n\nl.py"}) {
        put(name, "");
    }
    put(std::string("\xff.py"), "");
    fs::create_symlink("a.py", root / "link.py");
    fs::create_directory(root / "dir.py");
    fs::create_symlink("..", root / "src/up");
    CHECK_LIST(glob("**/*.py"), {".h/d.py", "a.py", "src/b.py", "src/n\nl.py", "src/x/c.py", "\xff.py"});
    CHECK_LIST(glob("src/*.py"), {"src/b.py", "src/n\nl.py", "src/x/c.py"});
    CHECK_LIST(glob("?.txt"), {"e.txt"});
    CHECK_LIST(glob("{a,e}.*"), {});
    CHECK_LIST(glob("*.py", at("src") + "/"), {"src/b.py", "src/n\nl.py", "src/x/c.py"});
    BOOST_TEST((test::get(context, box->glob({"*", at("a.py")})).error().code == errc::invalid));
    BOOST_TEST((test::get(context, box->glob({"*", at("none")})).error().code == errc::not_found));
}

BOOST_AUTO_TEST_CASE(grep_finds_lines_as_the_tool_does) {
    put("a.txt", "one\ntwo one\r\nthree");
    put("sub/b.py", "x = 'one'\n\n\none");
    put(".hidden/c.txt", "one\n");
    put("bin", std::string("one\0two", 7));
    put("-rf", "\"$x `one`\n");
    BOOST_REQUIRE(mkfifo(at("fifo").c_str(), 0600) == 0);
    fs::create_symlink("a.txt", root / "link");
    CHECK_LIST(lines("one"), {"-rf:1:\"$x `one`", "a.txt:1:one", "a.txt:2:two one\r", ".hidden/c.txt:1:one",
                              "sub/b.py:1:x = 'one'", "sub/b.py:4:one"});
    CHECK_LIST(lines("^one$"), {"a.txt:1:one", ".hidden/c.txt:1:one", "sub/b.py:4:one"});
    CHECK_LIST(lines("one", "*.py"), {"sub/b.py:1:x = 'one'", "sub/b.py:4:one"});
    CHECK_LIST(lines("thr[e]*", {}, false), {"a.txt:3:three"});
    CHECK_LIST(lines("one$", "*.txt", false), {"a.txt:1:one"});
    CHECK_LIST(lines("\"$x `"), {"-rf:1:\"$x `one`"});
    CHECK_LIST(lines("-nothing"), {});
    const auto single = search("t", at("a.txt")).value();
    BOOST_TEST(single.matches.size() == 2U);
    BOOST_TEST(single.matches.at(0).path == at("a.txt"));
    BOOST_TEST(single.matches.at(1).line_number == 3U);
    BOOST_TEST(search("one", at(".hidden"), {}, false).value().matches.size() == 1U);
    BOOST_TEST((search("[", root.string()).error().code == errc::invalid));
    BOOST_TEST(search("one", at("fifo")).error().message == "It is a FIFO, not a file");
    BOOST_TEST((search("one", at("none")).error().code == errc::not_found));
}

BOOST_AUTO_TEST_CASE(a_large_search_stops_at_its_bound) {
    std::string content;
    for (int i = 0; i < 20'000; ++i) {
        content += "needle in line " + std::to_string(i) + "\n";
    }
    put("f", content);
    put("long", std::string(300'000, 'x') + "needle");
    const auto many = search("needle", at("f")).value();
    BOOST_TEST(many.truncated);
    BOOST_TEST(many.matches.size() > 1'000U);
    BOOST_TEST(many.matches.back().line_number == many.matches.size());
    const auto wide = search("needle", at("long")).value();
    BOOST_TEST(wide.truncated);
    BOOST_TEST(wide.matches.size() == 1U);
    BOOST_TEST(wide.matches.at(0).line.size() < 100'000U);
}

BOOST_AUTO_TEST_CASE(a_tree_deeper_than_any_path) {
    int parent = ::open(root.c_str(), O_DIRECTORY | O_PATH);
    const std::string name(200, 'd');
    for (int i = 0; i < 1'000; ++i) {
        BOOST_REQUIRE(mkdirat(parent, name.c_str(), 0755) == 0);
        const int next = openat(parent, name.c_str(), O_DIRECTORY | O_PATH);
        close(parent);
        parent = next;
    }
    const int file = openat(parent, "deep.txt", O_CREAT | O_WRONLY, 0644);
    BOOST_TEST(::write(file, "needle\n", 7) == 7);
    close(file);
    close(parent);
    put("top.txt", "needle\n");
    const auto found = glob("*.txt");
    BOOST_TEST(found.size() == 2U);
    const auto hits = search("needle", root.string()).value();
    BOOST_TEST(hits.matches.size() == 1U); // the path alone of the other is longer than an answer
    BOOST_TEST(hits.truncated);
    std::string part = root.string();
    for (int i = 0; i < 100; ++i) { // 20 000 bytes
        part += "/" + name;
    }
    BOOST_REQUIRE(test::get(context, box->write(part + "/f", "x")));
    BOOST_TEST(test::get(context, box->read(part + "/f", 10)).value().bytes == "x");
    BOOST_TEST(test::get(context, box->exists(part + "/f")).value());
    BOOST_TEST(test::get(context, box->ls(part)).value().entries.size() == 2U);
    BOOST_TEST(edit(part + "/f", "x", "y").value().occurrences == 1U);
    exec("rm -rf '" + root.string() + "'").value();
}

BOOST_AUTO_TEST_CASE(a_sparse_file_of_a_hundred_gigabytes) {
    put("sparse", "needle\n");
    if (truncate(at("sparse").c_str(), 100'000'000'000) != 0) {
        return; // not on this file system
    }
    put("z", "needle\n");
    CHECK_LIST(lines("needle"),
               {"z:1:needle"}); // each within the test's patience, which reading it all is not
    BOOST_TEST(test::get(context, box->read(at("sparse"), 1'000)).value().size.value() == 100'000'000'000U);
}

task<void> write_in_the_background(std::shared_ptr<sandbox> box, std::string path, std::string content,
                                   std::optional<result<void>>& to) {
    to.emplace(co_await box->write(std::move(path), std::move(content)));
}

BOOST_AUTO_TEST_CASE(a_cut_channel_loses_nothing_of_a_transfer) {
    std::string content(3'000'000, '\0');
    for (std::size_t i = 0; i < content.size(); ++i) {
        content[i] = static_cast<char>(i * 7 + i / 251);
    }
    for (int round = 0; round < 5; ++round) {
        std::optional<result<void>> done;
        core::spawn(context.get_executor(), "write", background,
                    write_in_the_background(box, at("f"), content, done));
        const auto before = host->connections();
        context.restart();
        context.run_for(std::chrono::milliseconds(3 * round));
        host->cut();
        until([&] { return done.has_value() && host->connections() > before; });
        BOOST_REQUIRE(done->has_value());
        BOOST_CHECK(bytes_of("f") == content);
        content[static_cast<std::size_t>(round)] = 'x';
    }
    const auto got = test::get(context, box->read(at("f"), 10'000'000)).value();
    BOOST_CHECK(got.bytes == bytes_of("f"));
}

BOOST_AUTO_TEST_SUITE_END()
