#include "images/keeper.hpp"
#include "core/deadline.hpp"
#include "core/event.hpp"
#include "support/run.hpp"

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <map>
#include <set>
#include <string>
#include <vector>

namespace {

namespace asio = boost::asio;
namespace images = sandboxd::images;
using namespace std::chrono_literals;
using sandboxd::errc;
using sandboxd::error;
using sandboxd::result;
using sandboxd::task;
using std::string;

images::recipe recipe_of(string name, bool cache = true) {
    sandboxd::runtime_definition d;
    d.name = std::move(name);
    d.base_image = "debian:12";
    d.cache_image = cache;
    return *images::make_recipe(std::move(d));
}

/// Images by name; what is asked of it is written down.
class made_up_source final : public images::image_source {
public:
    std::set<string> here;
    std::map<string, int> failures; ///< of the next pulls or builds of that image
    std::vector<string> asked;
    std::vector<string> last_kept;
    bool hangs = false;
    std::shared_ptr<sandboxd::core::shared_event> begun = std::make_shared<sandboxd::core::shared_event>();
    std::shared_ptr<sandboxd::core::shared_event> go_on; ///< waited for by pulls and builds

    task<result<bool>> present(string reference) override {
        asked.push_back("present " + reference);
        co_return here.count(reference) != 0;
    }
    task<result<void>> pull(string reference, images::progress_sink tell) override {
        asked.push_back("pull " + reference);
        co_return co_await work(reference, tell);
    }
    task<result<void>> build(images::recipe what, images::progress_sink tell) override {
        asked.push_back("build " + what.tag);
        co_return co_await work(what.tag, tell);
    }
    task<void> prune(string runtime, std::vector<string> kept) override {
        asked.push_back("prune " + runtime);
        last_kept = std::move(kept);
        co_return;
    }
    task<void> sweep(std::vector<string> kept) override {
        asked.push_back("sweep");
        last_kept = std::move(kept);
        co_return;
    }

    [[nodiscard]] long times(const string& what) const {
        return std::count(asked.begin(), asked.end(), what);
    }

private:
    task<result<void>> work(const string& name, const images::progress_sink& tell) {
        tell({"half of it", 1, 2});
        begun->set();
        if (hangs) {
            co_await sandboxd::core::sleep_for(1h);
            co_return error{errc::start_failed, "cut short"};
        }
        if (go_on) {
            co_await go_on->wait();
        }
        if (failures[name] > 0) {
            --failures[name];
            co_return error{errc::start_failed, "no network for " + name};
        }
        here.insert(name);
        co_return result<void>();
    }
};

struct fixture {
    asio::io_context context;
    sandboxd::core::gate background;
    std::shared_ptr<made_up_source> source = std::make_shared<made_up_source>();
    std::shared_ptr<sandboxd::core::manual_clock> clock = sandboxd::core::create_manual_clock(1000);
    std::vector<std::chrono::steady_clock::duration> pauses;
    std::shared_ptr<images::keeper> keeper;
    images::keeper_options options;

    fixture() {
        options.executor = context.get_executor();
        options.background = &background;
        options.source = source;
        options.clock = clock;
        options.pause = [this](std::chrono::steady_clock::duration time) { return pause(time); };
    }
    ~fixture() {
        if (keeper) {
            keeper->close();
        }
        background.close();
        sandboxd::test::run(context, background.drained());
    }
    fixture(const fixture&) = delete;
    fixture& operator=(const fixture&) = delete;

    void make(std::vector<images::wanted_image> allowed = {}) {
        options.allowed = std::move(allowed);
        keeper = images::create_keeper(options);
    }
    task<bool> pause(std::chrono::steady_clock::duration time) {
        pauses.push_back(time);
        clock->advance(std::chrono::duration_cast<std::chrono::milliseconds>(time));
        co_return true;
    }
    template <class T>
    T get(task<T> body) {
        return sandboxd::test::get(context, std::move(body));
    }
};

std::vector<images::wanted_image> allowlist(const images::recipe& built) {
    return {
        {"zeta", "busybox", std::nullopt}, {"coding", built.tag, built}, {"also", "busybox", std::nullopt}};
}

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
                                        "build " + built.tag, "prune coding"}),
               boost::test_tools::per_element());
    BOOST_TEST(source->last_kept == (std::vector<string>{"busybox", built.tag, "busybox", built.tag}),
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

BOOST_AUTO_TEST_CASE(a_pass_goes_by_alias_and_tries_again_after_ten_seconds) {
    const auto built = recipe_of("coding");
    make(allowlist(built));
    source->failures[built.tag] = 1;
    const auto failed = get(keeper->warm(2));
    BOOST_TEST(failed.empty());
    BOOST_TEST(source->asked ==
                   (std::vector<string>{"present busybox", "pull busybox", "present " + built.tag,
                                        "build " + built.tag, "present " + built.tag, "build " + built.tag,
                                        "prune coding", "present busybox", "sweep"}),
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

BOOST_AUTO_TEST_CASE(a_deadline_ends_the_attempt) {
    options.pull_limit = 20ms;
    make();
    source->hangs = true;
    const auto answer = get(keeper->ready("busybox"));
    BOOST_REQUIRE(!answer);
    BOOST_TEST((answer.error().code == errc::timeout));
    BOOST_TEST(answer.error().message == "image busybox was not pulled within 0.02 s");
    source->hangs = false;
    BOOST_TEST(get(keeper->ready("busybox")).has_value());
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

BOOST_AUTO_TEST_CASE(what_goes_on_can_be_seen) {
    const auto built = recipe_of("coding");
    source->here = {"busybox"};
    make(allowlist(built));
    source->go_on = std::make_shared<sandboxd::core::shared_event>();
    const auto seen = get(look_while_building(keeper, source, clock));
    BOOST_REQUIRE(seen.size() == 2U);
    BOOST_TEST(seen[0].alias == "coding");
    BOOST_TEST(images::name_of(seen[0].doing) == "building");
    BOOST_TEST(seen[0].done == 1U);
    BOOST_TEST(seen[0].of == 2U);
    BOOST_TEST(seen[0].since.count() == 7);
    BOOST_TEST(seen[1].alias == "zeta");
    BOOST_TEST(images::name_of(seen[1].doing) == "queued");
    BOOST_TEST(source->times("sweep") == 1);
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

} // namespace
