#include "images/build_steps.hpp"
#include "images/progress_lines.hpp"

#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

// How steps are counted, and what the log says of them.

namespace {

namespace images = sandboxd::images;
using namespace std::chrono_literals;
using images::builder;
using images::progress;
using std::string;

struct steps_fixture {
    std::vector<string> seen;

    [[nodiscard]] images::progress_sink sink() {
        return [this](const progress& news) {
            seen.push_back(std::to_string(news.done) + "/" + std::to_string(news.of) +
                           (news.begins ? " begins " : " ") + news.text);
        };
    }

    static images::recipe recipe() {
        sandboxd::runtime_definition d;
        d.name = "web";
        d.base_image = "node:20";
        d.setup_commands = {"true"};
        d.packages = {"vite"};
        d.package_manager = "npm";
        d.env_vars = {{"A", "1"}};
        return *images::make_recipe(std::move(d));
    }
};

BOOST_FIXTURE_TEST_SUITE(steps_of_a_build, steps_fixture)

BOOST_AUTO_TEST_CASE(each_is_told_once_when_it_begins) {
    images::build_steps steps(recipe(), sink());
    for (const std::size_t number : {1U, 1U, 2U, 4U, 3U, 0U, 7U}) {
        steps.begin(number);
    }
    steps.say("words");
    BOOST_TEST(seen == (std::vector<string>{"1/6 begins FROM node:20", "2/6 begins RUN true",
                                            "4/6 begins RUN npm install vite", "4/6 words"}),
               boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(either_builders_own_count_becomes_ours) {
    images::build_steps classic(recipe(), sink());
    for (const auto& [at, of] : {std::pair{1U, 6U}, {2U, 6U}, {2U, 6U}, {5U, 6U}, {6U, 6U}, {7U, 6U}}) {
        classic.begin_as(builder::classic, {"as it says", at, of, false});
    }
    BOOST_TEST(seen == (std::vector<string>{"1/6 begins FROM node:20", "2/6 begins RUN true",
                                            "5/6 begins ENV A=1", "6/6 begins WORKDIR /workspace"}),
               boost::test_tools::per_element());
    seen.clear();
    images::build_steps kit(recipe(), sink()); // which doesn't count ENV
    for (const auto& [at, of] : {std::pair{0U, 0U}, {1U, 5U}, {4U, 5U}, {5U, 5U}, {6U, 6U}}) {
        kit.begin_as(builder::buildkit, {"as it says", at, of, false});
    }
    BOOST_TEST(seen == (std::vector<string>{"1/6 begins FROM node:20", "4/6 begins RUN npm install vite",
                                            "6/6 begins WORKDIR /workspace"}),
               boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(lines_of_the_log)

BOOST_AUTO_TEST_CASE(a_build) {
    const images::progress_lines::time_point start{};
    images::progress_lines lines("building x:1", start, 5s, 30s);
    const auto line = [](const std::optional<string>& made) { return made.value_or("(none)"); };
    BOOST_TEST(line(lines.note({"FROM a", 1, 3, true}, start)) == "building x:1: step 1 of 3: FROM a");
    BOOST_TEST(line(lines.note({"2 of 3 layers", 1, 3, false}, start + 4s)) == "(none)");
    BOOST_TEST(line(lines.note({"3 of 3 layers", 1, 3, false}, start + 5s)) ==
               "building x:1: step 1 of 3: 3 of 3 layers");
    BOOST_TEST(line(lines.note({"RUN b", 2, 3, true}, start + 6s)) == "building x:1: step 2 of 3: RUN b");
    BOOST_TEST(line(lines.sign_of_life(start + 35s)) == "(none)");
    BOOST_TEST((lines.quiet_until() == start + 36s));
    BOOST_TEST(line(lines.sign_of_life(start + 36s)) == "building x:1: step 2 of 3, for 30 s now: RUN b");
    BOOST_TEST((lines.quiet_until() == start + 66s));
    BOOST_TEST(line(lines.sign_of_life(start + 60s)) == "(none)");
    BOOST_TEST(line(lines.sign_of_life(start + 66s)) == "building x:1: step 2 of 3, for 60 s now: RUN b");
    BOOST_TEST(lines.latest().done == 2U);
}

BOOST_AUTO_TEST_CASE(a_pull) {
    const images::progress_lines::time_point start{};
    images::progress_lines lines("pulling x:1", start, 5s, 30s);
    BOOST_TEST(lines.sign_of_life(start + 30s).value_or("") == "pulling x:1: for 30 s now");
    BOOST_TEST(lines.note({"1 of 2 layers, 5 MB", 1, 2, false}, start + 35s).value_or("") ==
               "pulling x:1: 1 of 2 layers, 5 MB");
    BOOST_TEST(!lines.note({"", 2, 2, false}, start + 36s));
    BOOST_TEST(lines.sign_of_life(start + 65s).value_or("") ==
               "pulling x:1: for 65 s now: 1 of 2 layers, 5 MB");
}

BOOST_AUTO_TEST_CASE(long_instructions_are_cut_between_characters) {
    const images::progress_lines::time_point start{};
    images::progress_lines lines("building x:1", start, 5s, 30s);
    const auto made = lines.note({string(299, 'a') + "\xc3\xa4" + string(99, 'b'), 1, 1, true}, start);
    BOOST_TEST(made.value_or("") == "building x:1: step 1 of 1: " + string(299, 'a') + "...");
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
