#include "core/spawn.hpp"
#include "fixture.hpp"

#include <algorithm>

namespace images_tests {

namespace {

task<std::vector<string>> pass_beside(std::shared_ptr<images::keeper> keeper,
                                      std::shared_ptr<made_up_source> source, string reference,
                                      sandboxd::core::gate& inside) {
    const auto executor = co_await asio::this_coro::executor;
    const auto ready = [](auto who, string what) -> task<void> {
        const auto done = co_await who->ready(std::move(what));
        BOOST_TEST(done.has_value());
    };
    source->begun = std::make_shared<sandboxd::core::shared_event>();
    source->go_on = std::make_shared<sandboxd::core::shared_event>();
    sandboxd::core::spawn(executor, "ready", inside, ready(keeper, reference));
    co_await source->begun->wait();
    const auto failed = co_await keeper->warm(1);
    BOOST_TEST(failed.empty());
    auto kept = source->last_kept;
    source->go_on->set();
    co_return kept;
}

task<void> be_quiet(std::shared_ptr<images::keeper> keeper, std::shared_ptr<made_up_source> source,
                    std::shared_ptr<sandboxd::core::manual_clock> clock, const std::vector<string>& said) {
    keeper->begin_warming();
    co_await source->begun->wait();
    clock->advance(31s);
    while (said.size() < 2) {
        co_await sandboxd::core::sleep_for(1ms);
    }
    source->go_on->set();
}

task<std::vector<images::warming>> look_while_building(std::shared_ptr<images::keeper> keeper,
                                                       std::shared_ptr<made_up_source> source,
                                                       std::shared_ptr<sandboxd::core::manual_clock> clock) {
    keeper->begin_warming();
    co_await source->begun->wait();
    clock->advance(7s);
    auto seen = keeper->snapshot();
    source->go_on->set();
    while (!keeper->snapshot().empty()) {
        co_await sandboxd::core::sleep_for(1ms);
    }
    co_return seen;
}

} // namespace

BOOST_FIXTURE_TEST_SUITE(the_pass_over_images, fixture)

BOOST_AUTO_TEST_CASE(a_pass_goes_by_alias_and_tries_again_after_ten_seconds) {
    const auto built = recipe_of("coding");
    make(allowlist(built));
    source->failures[built.tag] = 1;
    const auto failed = get(keeper->warm(2));
    BOOST_TEST(failed.empty());
    BOOST_TEST(source->asked ==
                   (std::vector<string>{"present busybox", "pull busybox", "present " + built.tag,
                                        "build " + built.tag, "present " + built.tag, "build " + built.tag,
                                        "prune coding", "pruned coding", "present busybox", "sweep"}),
               boost::test_tools::per_element());
    BOOST_REQUIRE(pauses.size() == 1U);
    BOOST_TEST((pauses[0] == 10s));
    BOOST_TEST(keeper->snapshot().empty());
}

BOOST_AUTO_TEST_CASE(what_never_works_is_named_and_the_rest_goes_on) {
    const auto built = recipe_of("coding");
    make(allowlist(built));
    source->failures[built.tag] = 9;
    const auto failed = get(keeper->warm(3));
    BOOST_TEST(failed == (std::vector<string>{"coding"}), boost::test_tools::per_element());
    BOOST_TEST(source->times("build " + built.tag) == 3);
    BOOST_TEST(pauses.size() == 2U);
    BOOST_TEST(source->here.count("busybox") == 1U);
    BOOST_TEST(source->times("sweep") == 0); // not all that is wanted is known to be here
}

BOOST_AUTO_TEST_CASE(a_sweep_leaves_what_is_built_and_what_that_stands_on) {
    const auto old = recipe_of("old");
    source->here = {"busybox", "alpine"};
    make({{"box", "busybox", std::nullopt}});
    keeper->learn(old);
    BOOST_TEST(get(keeper->ready("alpine")).has_value()); // a moment ago
    const auto kept = get(pass_beside(keeper, source, old.tag, background));
    BOOST_TEST(kept == (std::vector<string>{"busybox", old.tag, "debian:12", "alpine", "busybox"}),
               boost::test_tools::per_element());
    BOOST_TEST(get(keeper->ready(old.tag)).has_value()); // the build has ended
    clock->advance(11min);
    BOOST_TEST(get(keeper->warm(1)).empty());
    BOOST_TEST(source->last_kept == (std::vector<string>{"busybox", "busybox"}),
               boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_quiet_step_gives_signs_of_life) {
    const auto built = recipe_of("coding");
    std::vector<string> said;
    options.quiet = 1ms;
    options.say = [&said](const string& line) { said.push_back(line); };
    make({{"coding", built.tag, built}});
    source->go_on = std::make_shared<sandboxd::core::shared_event>();
    sandboxd::test::run(context, be_quiet(keeper, source, clock, said));
    BOOST_TEST(said ==
                   (std::vector<string>{"building " + built.tag + ": step 1 of 2: half of it",
                                        "building " + built.tag + ": step 1 of 2, for 31 s now: half of it"}),
               boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(what_goes_on_can_be_seen) {
    const auto built = recipe_of("coding");
    source->here = {"busybox"};
    make(allowlist(built));
    source->go_on = std::make_shared<sandboxd::core::shared_event>();
    const auto seen = get(look_while_building(keeper, source, clock));
    BOOST_REQUIRE(seen.size() == 2U);
    BOOST_TEST(seen[0].alias == "coding");
    BOOST_TEST(images::name_of(seen[0].doing) == "building");
    BOOST_TEST(seen[0].step == 1U);
    BOOST_TEST(seen[0].done == 0U);
    BOOST_TEST(seen[0].of == 2U);
    BOOST_TEST(seen[0].since.count() == 7);
    BOOST_TEST(seen[1].alias == "zeta");
    BOOST_TEST(images::name_of(seen[1].doing) == "queued");
    BOOST_TEST(source->times("sweep") == 1);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace images_tests
