#include "docker_fixture.hpp"

#include "core/spawn.hpp"
#include "images/proxy.hpp"
#include "sandbox/docker/build_output.hpp"
#include "sandbox/docker/pull_progress.hpp"

#include <boost/test/unit_test.hpp>

#include <map>
#include <string>
#include <vector>

using namespace sandboxd;
using namespace sandboxd::test;
using sandboxes::docker_backend::build_output;
using sandboxes::docker_backend::pull_count;

namespace {

images::recipe recipe_of(const std::string& name, const std::string& base = "box", bool cache = true) {
    runtime_definition d;
    d.name = name;
    d.base_image = base;
    d.cache_image = cache;
    d.setup_commands = {"true"};
    return images::make_recipe(std::move(d)).value();
}

task<void> open_one(std::shared_ptr<sandbox_builder> builder, sandbox_spec of, int* opened) {
    auto slot = co_await builder->prepare(of);
    const auto made = co_await builder->build(std::move(of), *slot);
    *opened += made.has_value() ? 1 : 0;
}

BOOST_FIXTURE_TEST_SUITE(images_on_docker, docker_fixture)

BOOST_AUTO_TEST_CASE(an_image_with_a_recipe_is_built_once_for_all_who_ask) {
    const auto made = recipe_of("coding");
    keeper->learn(made);
    int opened = 0;
    for (int i = 0; i < 3; ++i) {
        core::spawn(context.get_executor(), "open", background, open_one(builder, spec(made.tag), &opened));
    }
    until([&] { return opened == 3; });
    BOOST_REQUIRE(daemon->builds.size() == 1U);
    BOOST_TEST(daemon->builds[0].tag == made.tag);
    BOOST_TEST(daemon->builds[0].dockerfile == "FROM box\nRUN true\nWORKDIR /workspace");
    BOOST_TEST(daemon->builds[0].arguments[0].first == "HTTP_PROXY");
    BOOST_TEST(daemon->pulls == 0);
}

BOOST_AUTO_TEST_CASE(a_base_image_that_is_absent_is_pulled_before) {
    const auto made = recipe_of("coding", "base:1");
    keeper->learn(made);
    BOOST_TEST(open(spec(made.tag)).has_value());
    BOOST_TEST(daemon->pulls == 1);
    BOOST_TEST(daemon->images.contains("base:1"));
    const auto nothing = recipe_of("nothing", "scratch");
    keeper->learn(nothing);
    BOOST_TEST(open(spec(nothing.tag)).has_value());
    BOOST_TEST(daemon->pulls == 1);
}

BOOST_AUTO_TEST_CASE(a_build_that_fails_is_told_with_the_steps_last_words_and_tried_again) {
    const auto made = recipe_of("coding");
    keeper->learn(made);
    daemon->build_errors.push_back(daemon_says(500, "cannot build it: returned a non-zero code: 3"));
    const auto failed = open(spec(made.tag));
    BOOST_REQUIRE(!failed);
    BOOST_TEST((failed.error().code == errc::start_failed));
    BOOST_TEST(failed.error().message ==
               "Building " + made.tag +
                   " failed: cannot build it: returned a non-zero code: 3\nRUN something\nit says a word");
    BOOST_TEST(daemon->created.empty());
    BOOST_TEST(open(spec(made.tag)).has_value());
}

BOOST_AUTO_TEST_CASE(what_is_no_image_of_a_registry_is_no_base) {
    const auto made = recipe_of("coding", "dir:/srv/x y");
    keeper->learn(made);
    const auto failed = open(spec(made.tag));
    BOOST_REQUIRE(!failed);
    BOOST_TEST(failed.error().message == "the image of runtime 'coding' can't be built: its base_image "
                                         "'dir:/srv/x y' is no image of a registry");
    BOOST_TEST(daemon->builds.empty());
}

BOOST_AUTO_TEST_CASE(older_images_of_that_runtime_go_unless_they_are_used) {
    const std::string repo = "pydantic-ai-backend-runtime:";
    const auto made = recipe_of("coding");
    for (const char* name :
         {"coding-000000000001", "coding-000000000002", "coding-tools-000000000001", "coding-x"}) {
        daemon->add_image(repo + name);
    }
    daemon->used.insert(repo + "coding-000000000002");
    keeper->learn(made);
    BOOST_TEST(open(spec(made.tag)).has_value());
    BOOST_TEST(!daemon->images.contains(repo + "coding-000000000001"));
    for (const std::string name : {"coding-000000000002", "coding-tools-000000000001", "coding-x"}) {
        BOOST_TEST(daemon->images.contains(repo + name), name);
    }
    BOOST_TEST(daemon->images.contains(made.tag));
    BOOST_TEST(daemon->images.contains("box"));
}

BOOST_AUTO_TEST_CASE(without_a_cache_every_open_builds) {
    const auto made = recipe_of("fresh", "box", false);
    keeper->learn(made);
    BOOST_TEST(open(spec(made.tag)).has_value());
    BOOST_TEST(open(spec(made.tag)).has_value());
    BOOST_TEST(daemon->builds.size() == 2U);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(what_builders_and_pulls_say)

BOOST_AUTO_TEST_CASE(steps_of_either_builder) {
    images::progress seen;
    build_output said([&](images::progress news) { seen = std::move(news); });
    said.add("Step 2/5 : RUN pip install x");
    BOOST_TEST(seen.done == 2U);
    BOOST_TEST(seen.of == 5U);
    BOOST_TEST(seen.text == "RUN pip install x");
    said.add("#7 [3/4] RUN npm install y");
    BOOST_TEST(seen.done == 3U);
    BOOST_TEST(seen.of == 4U);
    for (const char* other : {"#7 0.31 words", "Step by step", "#x [1/2]", "#7 [internal] load",
                              "Step 1/x : ", "#7 [stage-0 4/4]", "#7 [4/4", "#7 [ ] x"}) {
        said.add(other);
        BOOST_TEST(seen.done == 3U);
    }
    said.add("#8 [stage-0 4/4] WORKDIR /a [5/5] b");
    BOOST_TEST(seen.done == 4U);
    BOOST_TEST(seen.text == "WORKDIR /a [5/5] b");
    said.add("#9 [linux/amd64 stage-0 1/2] FROM box");
    BOOST_TEST(seen.done == 1U);
    BOOST_TEST(seen.of == 2U);
}

BOOST_AUTO_TEST_CASE(what_buildkit_repeats_at_the_end_is_told_once) {
    build_output said({});
    for (const char* line :
         {"#8 [1/2] FROM box", "#8 CACHED", "", "#9 [stage-0 2/2] RUN y", "#9 0.370 some words",
          "#9 12.5 ------", "#9 12.6", "#9 ERROR: exit code: 3", "------",
          " > [stage-0 2/2] RUN y:", "0.370 some words", "------", "ERROR: failed to solve: exit code: 3"}) {
        said.add(line);
    }
    BOOST_TEST(said.last_lines() ==
               "RUN y\nsome words\n------\n\n#9 ERROR: exit code: 3\nERROR: failed to solve: exit code: 3");
    build_output classic({});
    for (const char* line : {"Step 1/1 : RUN y", "a", "------", "#9 0.1 b", "------"}) {
        classic.add(line);
    }
    BOOST_TEST(classic.last_lines() == "RUN y\na\n------\n#9 0.1 b\n------");
}

BOOST_AUTO_TEST_CASE(the_last_lines_are_those_of_the_last_step_and_bounded) {
    build_output said({});
    said.add("Step 1/2 : FROM x");
    said.add("of the first");
    said.add("Step 2/2 : RUN y");
    said.add(" ---> Running in 01");
    said.add("a");
    said.add("b");
    BOOST_TEST(said.last_lines() == "RUN y\na\nb");
    for (int i = 0; i < 100; ++i) {
        said.add(std::string(500, 'x'));
    }
    BOOST_TEST(said.last_lines().size() < 3100U);
    BOOST_TEST(said.last_lines().find("a\n") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(layers_are_counted) {
    images::progress seen;
    pull_count count([&](images::progress news) { seen = std::move(news); });
    count.add({"3.12", "Pulling from library/python", {}, {}});
    count.add({"one", "Downloading", 3'000'000, 9'000'000});
    count.add({"two", "Already exists", {}, {}});
    count.add({"one", "Pull complete", {}, {}});
    count.add({"three", "Downloading", 2'500'000, {}});
    BOOST_TEST(seen.done == 2U);
    BOOST_TEST(seen.of == 3U);
    BOOST_TEST(seen.text == "2 of 3 layers, 5 MB");
}

BOOST_AUTO_TEST_CASE(proxies_in_both_spellings) {
    const std::map<std::string, std::string> set{
        {"HTTP_PROXY", "http://a"}, {"no_proxy", "b"}, {"https_proxy", ""}};
    const auto found = images::proxy_settings([&](const std::string& name) {
        const auto one = set.find(name);
        return one == set.end() ? std::nullopt : std::optional(one->second);
    });
    const std::vector<std::pair<std::string, std::string>> expected{
        {"HTTP_PROXY", "http://a"}, {"http_proxy", "http://a"}, {"NO_PROXY", "b"}, {"no_proxy", "b"}};
    BOOST_TEST((found == expected));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
