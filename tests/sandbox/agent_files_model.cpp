// Random writes, edits and reads agree with a model in memory (issue: property-based, seeded). 100 000 steps
// with SANDBOXD_TEST_LONG=1.

#include "agent_fixture.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <random>

using namespace sandboxd;
namespace fs = std::filesystem;

namespace {

struct model : test::agent_fixture {
    model() : root(fs::temp_directory_path() / ("model-" + test::fresh_id())) {
        fs::create_directories(root);
    }
    ~model() { fs::remove_all(root); }

    std::string path_of(const std::string& name) const { return (root / name).string(); }
    std::string any_name() { return names[random() % std::size(names)]; }
    std::string any_text(std::size_t most);
    void step();
    void write();
    void edit();
    void read();

    static constexpr const char* names[] = {"a", "b.txt", "d/a", "d/e/f", " x\n", "\xff", "link"};
    fs::path root;
    std::mt19937 random{20'260'729};
    std::map<std::string, std::string> files;
};

std::string model::any_text(std::size_t most) {
    static constexpr std::string_view pieces[] = {"a", "b", "ab", "\n", "\r\n", "é", "\xe9", " ", "xyz"};
    std::string out;
    const auto size = random() % (most + 1);
    while (out.size() < size) {
        out += pieces[random() % std::size(pieces)];
    }
    return out;
}

void model::write() {
    const auto name = any_name();
    const auto text = any_text(random() % 50 == 0 ? 100'000 : 200);
    BOOST_REQUIRE(test::get(context, box->write(path_of(name), text)));
    files[name == "link" ? "a" : name] = text;
}

/// What contract 3.6 and "Decided" 11 say, in the plainest way.
std::uint64_t edit_plainly(std::string& content, std::string from, std::string to, bool all) {
    const auto count = [&content](const std::string& text) {
        std::uint64_t out = 0;
        for (auto at = content.find(text); at != std::string::npos;
             at = content.find(text, at + text.size())) {
            ++out;
        }
        return out;
    };
    const auto crlf = [](const std::string& text) {
        std::string out;
        for (const char byte : text) {
            out += byte == '\n' && !out.ends_with('\r') ? "\r\n" : std::string(1, byte);
        }
        return out;
    };
    auto found = count(from);
    bool all_crlf = content.find('\n') != std::string::npos;
    for (std::size_t i = 0; i < content.size(); ++i) {
        all_crlf = all_crlf && (content[i] != '\n' || (i > 0 && content[i - 1] == '\r'));
    }
    if (found == 0 && all_crlf && from.find('\n') != std::string::npos) {
        from = crlf(from);
        to = crlf(to);
        found = count(from);
    }
    if (found == 1 || all) {
        for (auto at = content.find(from); at != std::string::npos; at = content.find(from, at + to.size())) {
            content.replace(at, from.size(), to);
        }
    }
    return found;
}

void model::edit() {
    const auto name = any_name();
    const auto key = name == "link" ? "a" : name;
    edit_request request;
    request.path = path_of(name);
    request.new_text = any_text(20);
    request.replace_all = random() % 2 == 0;
    request.max_bytes = 1'000'000;
    request.any_bytes = true;
    const auto& old = files[key];
    request.old_text = any_text(4) + "a";
    if (!old.empty() && random() % 4 != 0) {
        request.old_text = old.substr(random() % old.size(), 1 + random() % 12);
    }
    const auto got = test::get(context, box->edit(request));
    BOOST_REQUIRE(got);
    BOOST_REQUIRE(got->empty == old.empty());
    if (!old.empty()) {
        const auto expected =
            edit_plainly(files[key], request.old_text, request.new_text, request.replace_all);
        BOOST_REQUIRE(got->occurrences == expected);
    }
}

void model::read() {
    const auto name = any_name();
    const auto got = test::get(context, box->read(path_of(name), 10'000'000));
    BOOST_REQUIRE(got);
    BOOST_REQUIRE(got->bytes == files[name == "link" ? "a" : name]);
}

void model::step() {
    switch (random() % 4) {
    case 0:
        return write();
    case 1:
        return read();
    default:
        return edit();
    }
}

BOOST_FIXTURE_TEST_SUITE(agent_files_model, model)

BOOST_AUTO_TEST_CASE(random_steps_agree_with_the_model) {
    const char* const wish = std::getenv("SANDBOXD_TEST_LONG");
    const int steps = wish != nullptr && *wish == '1' ? 100'000 : 10'000;
    fs::create_symlink("a", root / "link");
    for (const auto* const name : names) {
        BOOST_REQUIRE(test::get(context, box->write(path_of(name), "start")));
        files[std::string(name) == "link" ? "a" : name] = "start";
    }
    for (int i = 0; i < steps; ++i) {
        BOOST_TEST_CONTEXT("step " << i) {
            step();
        }
    }
    BOOST_TEST(fs::is_symlink(root / "link"));
    for (const auto* const name : names) {
        const auto got = test::get(context, box->read(path_of(name), 10'000'000));
        BOOST_CHECK(got.value().bytes == files[std::string(name) == "link" ? "a" : name]);
    }
    const auto listing = test::get(context, box->ls(root.string())).value();
    BOOST_TEST(listing.entries.size() == 6U); // no temporary file is left
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
