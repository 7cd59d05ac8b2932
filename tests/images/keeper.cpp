#include "fixture.hpp"

#include <boost/asio/experimental/awaitable_operators.hpp>

namespace images_tests {

namespace {

task<std::vector<result<void>>> both(std::shared_ptr<images::keeper> keeper, string reference,
                                     std::shared_ptr<made_up_source> source) {
    using namespace asio::experimental::awaitable_operators;
    auto [a, b, c] =
        co_await (keeper->ready(reference) && keeper->ready(reference) && [](auto from) -> task<int> {
            co_await from->begun->wait();
            from->go_on->set();
            co_return 0;
        }(source));
    (void)c;
    std::vector<result<void>> out{a, b};
    co_return out;
}

task<result<void>> close_while_pulling(std::shared_ptr<images::keeper> keeper,
                                       std::shared_ptr<made_up_source> source) {
    using namespace asio::experimental::awaitable_operators;
    auto [answer, nothing] = co_await (keeper->ready("busybox") && [](auto who, auto from) -> task<int> {
        co_await from->begun->wait();
        who->close();
        co_return 0;
    }(keeper, source));
    (void)nothing;
    co_return answer;
}

} // namespace

BOOST_FIXTURE_TEST_SUITE(the_keeper_of_images, fixture)

BOOST_AUTO_TEST_CASE(what_is_here_is_ready) {
    source->here = {"busybox"};
    make();
    BOOST_TEST(get(keeper->ready("busybox")).has_value());
    BOOST_TEST(source->asked == (std::vector<string>{"present busybox"}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(what_is_not_is_pulled_or_built_and_older_ones_go) {
    const auto built = recipe_of("coding");
    make(allowlist(built));
    BOOST_TEST(get(keeper->ready("busybox")).has_value());
    BOOST_TEST(get(keeper->ready(built.tag)).has_value());
    BOOST_TEST(source->asked ==
                   (std::vector<string>{"present busybox", "pull busybox", "present " + built.tag,
                                        "build " + built.tag, "prune coding", "pruned coding"}),
               boost::test_tools::per_element());
    BOOST_TEST(source->last_kept ==
                   (std::vector<string>{"busybox", built.tag, "busybox", "busybox", built.tag}),
               boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_recipe_that_is_learnt_later_is_built) {
    make();
    const auto old = recipe_of("old");
    keeper->learn(old);
    BOOST_TEST(get(keeper->ready(old.tag)).has_value());
    BOOST_TEST(source->times("build " + old.tag) == 1);
}

BOOST_AUTO_TEST_CASE(without_a_cache_it_is_built_each_time_and_not_looked_for) {
    const auto fresh = recipe_of("fresh", false);
    make({{"fresh", fresh.tag, fresh}});
    BOOST_TEST(keeper->always_builds(fresh.tag));
    BOOST_TEST(!keeper->always_builds("busybox"));
    BOOST_TEST(get(keeper->ready(fresh.tag)).has_value());
    BOOST_TEST(get(keeper->ready(fresh.tag)).has_value());
    BOOST_TEST(source->times("build " + fresh.tag) == 2);
    BOOST_TEST(source->times("present " + fresh.tag) == 0);
}

BOOST_AUTO_TEST_CASE(two_who_ask_at_once_share_one_build) {
    const auto built = recipe_of("coding");
    make(allowlist(built));
    source->go_on = std::make_shared<sandboxd::core::shared_event>();
    const auto answers = get(both(keeper, built.tag, source));
    BOOST_TEST(answers[0].has_value());
    BOOST_TEST(answers[1].has_value());
    BOOST_TEST(source->times("build " + built.tag) == 1);
    BOOST_TEST(source->times("present " + built.tag) == 1);
}

BOOST_AUTO_TEST_CASE(a_failure_is_told_to_all_who_wait_and_forgotten) {
    make();
    source->failures["busybox"] = 1;
    source->go_on = std::make_shared<sandboxd::core::shared_event>();
    const auto answers = get(both(keeper, "busybox", source));
    for (const auto& one : answers) {
        BOOST_REQUIRE(!one);
        BOOST_TEST(one.error().message == "no network for busybox");
    }
    BOOST_TEST(get(keeper->ready("busybox")).has_value());
    BOOST_TEST(source->times("pull busybox") == 2);
}

BOOST_AUTO_TEST_CASE(a_deadline_ends_the_attempt) {
    options.pull_limit = 1s;
    make();
    source->hangs = true;
    const auto answer = get(keeper->ready("busybox"));
    BOOST_REQUIRE(!answer);
    BOOST_TEST((answer.error().code == errc::timeout));
    BOOST_TEST(answer.error().message == "image busybox was not pulled within 1 s");
    source->hangs = false;
    BOOST_TEST(get(keeper->ready("busybox")).has_value());
}

BOOST_AUTO_TEST_CASE(an_exception_ends_the_attempt_at_once) {
    const auto built = recipe_of("py");
    source->throws = true;
    make(allowlist(built));
    for (const auto& reference : {built.tag, string("plain:1")}) {
        const auto done = get(keeper->ready(reference));
        BOOST_TEST(static_cast<int>(done.error().code) == static_cast<int>(errc::internal));
        BOOST_TEST(done.error().message == "image " + reference + ": an internal error");
    }
}

BOOST_AUTO_TEST_CASE(who_waits_for_a_build_does_not_wait_for_removals) {
    const auto built = recipe_of("coding");
    make(allowlist(built));
    source->prune_on = std::make_shared<sandboxd::core::shared_event>();
    BOOST_TEST(get(keeper->ready(built.tag)).has_value());
    BOOST_TEST(source->times("prune coding") == 1);
    BOOST_TEST(source->times("pruned coding") == 0);
    BOOST_TEST(keeper->snapshot().empty());
    keeper->close(); // ends it
    background.close();
    sandboxd::test::run(context, background.drained());
    BOOST_TEST(source->times("pruned coding") == 0);
}

// Of one runtime two images: a session that was opened before the entry changed still has the older.
BOOST_AUTO_TEST_CASE(a_build_leaves_an_older_image_that_somebody_has_just_asked_for) {
    const auto built = recipe_of("coding");
    auto before = built.from;
    before.env_vars = {{"A", "1"}};
    const auto old = *images::make_recipe(before);
    BOOST_REQUIRE(old.tag != built.tag);
    make(allowlist(built));
    keeper->learn(old);
    BOOST_TEST(get(keeper->ready(old.tag)).has_value());
    BOOST_TEST(get(keeper->ready(built.tag)).has_value());
    BOOST_TEST(std::ranges::count(source->last_kept, old.tag) == 1);
    clock->advance(11min);
    source->here.erase(built.tag);
    BOOST_TEST(get(keeper->ready(built.tag)).has_value());
    BOOST_TEST(std::ranges::count(source->last_kept, old.tag) == 0);
}

BOOST_AUTO_TEST_CASE(closing_ends_what_is_under_way) {
    make();
    source->hangs = true;
    const auto answer = get(close_while_pulling(keeper, source));
    BOOST_REQUIRE(!answer);
    BOOST_TEST((answer.error().code == errc::unavailable));
    const auto later = get(keeper->ready("busybox"));
    BOOST_REQUIRE(!later);
    BOOST_TEST((later.error().code == errc::unavailable));
    BOOST_TEST(source->times("present busybox") == 1);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace images_tests
