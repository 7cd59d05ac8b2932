// Texts have workers of their own, and a time.

#include "session/archive.hpp"
#include "session/on_context.hpp"
#include "session/service.hpp"
#include "text/lines.hpp"

#include <boost/test/unit_test.hpp>

#include <fstream>

using namespace sandboxd;
using namespace std::chrono_literals;

namespace {

struct fixture : test::on_context {
    fixture() {
        std::filesystem::create_directories(root.path() / "a" / "workspace");
        put("small.txt", "one\ntwo\n");
        put("large.txt", large);
        config.workspace_root = root.path().string();
    }
    void put(const std::string& name, const std::string& bytes) const {
        std::ofstream(root.path() / "a" / "workspace" / name, std::ios::binary) << bytes;
    }
    std::optional<result<std::string>> lines(const std::string& bytes,
                                             std::chrono::steady_clock::time_point until) {
        return get(texts.lines("f.txt", bytes, 1, 1, until));
    }
    static std::chrono::steady_clock::time_point soon() { return std::chrono::steady_clock::now() + 1min; }

    const std::string large = "one\ntwo\n" + std::string(100'000, 'x');
    test::temporary_directory root;
    settings config = test::test_settings();
    session::text_extractor texts;
    core::worker_pool workers{"test", 1};
};

} // namespace

BOOST_FIXTURE_TEST_SUITE(texts_of_files, fixture)

BOOST_AUTO_TEST_CASE(lines_are_given_in_time_or_not_at_all) {
    const auto small = lines("one\ntwo\n", soon()).value().value();
    BOOST_TEST(small.find("two") != std::string::npos);
    BOOST_TEST(lines(large, soon()).value().value().find("two") != std::string::npos);
    BOOST_TEST(!lines(large, std::chrono::steady_clock::now()).has_value());
    const auto binary = get(texts.lines("f.bin", std::string_view("a\0b\xFF\xFF", 5), 0, 1, soon()));
    BOOST_TEST(binary.value().error().message == "[Binary File]");
    texts.stop();
    BOOST_TEST(!lines(large, soon()).has_value());
    BOOST_TEST(lines("one\ntwo\n", soon()).value().value() == small);
}

BOOST_AUTO_TEST_CASE(the_archive_takes_texts_from_the_same_place) {
    const auto all =
        session::create_archive(workers, texts, [this] { return std::make_shared<const settings>(config); });
    const auto small = get(all->read("a", {"small.txt", 0, 1}));
    BOOST_TEST(small.value().find("one") != std::string::npos);
    BOOST_TEST(get(all->read("a", {"large.txt", 0, 1})).value() == text::slice_lines(large, 0, 1));
    BOOST_TEST(get(all->read("a", {"../x", 0, 1})).error().message.find("outside the workspace") !=
               std::string::npos);
    texts.stop();
    BOOST_TEST(get(all->read("a", {"small.txt", 0, 1})).value() == small.value());
    const auto late = get(all->read("a", {"large.txt", 0, 1}));
    CHECK_ERROR(late, errc::timeout, "Reading the workspace took too long");
    BOOST_TEST(get(all->read_bytes("a", "large.txt")).value() == large);
}

BOOST_AUTO_TEST_SUITE_END()
