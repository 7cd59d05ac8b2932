#include "images/keeper.hpp"
#include "core/deadline.hpp"
#include "core/event.hpp"
#include "core/spawn.hpp"
#include "images/job.hpp"
#include "support/run.hpp"

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
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
    bool throws = false; ///< what no source should
    std::shared_ptr<sandboxd::core::shared_event> begun = std::make_shared<sandboxd::core::shared_event>();
    std::shared_ptr<sandboxd::core::shared_event> go_on;    ///< waited for by pulls and builds
    std::shared_ptr<sandboxd::core::shared_event> prune_on; ///< by the removal of older images

    task<result<bool>> present(string reference) override {
        asked.push_back("present " + reference);
        co_return here.count(reference) != 0;
    }
    task<result<void>> pull(string reference, images::progress_sink tell) override {
        asked.push_back("pull " + reference);
        co_return co_await work(reference, tell, false);
    }
    task<result<void>> build(images::recipe what, images::progress_sink tell) override {
        asked.push_back("build " + what.tag);
        co_return co_await work(what.tag, tell, true);
    }
    task<void> prune(string runtime, std::vector<string> kept) override {
        asked.push_back("prune " + runtime);
        last_kept = std::move(kept);
        if (prune_on) {
            co_await prune_on->wait();
        }
        asked.push_back("pruned " + runtime);
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
    task<result<void>> work(const string& name, const images::progress_sink& tell, bool steps) {
        tell({"half of it", 1, 2, steps});
        begun->set();
        if (hangs) {
            co_await sandboxd::core::sleep_for(1h);
            co_return error{errc::start_failed, "cut short"};
        }
        if (throws) {
            throw std::runtime_error("a bug");
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
    BOOST_TEST(seen[0].step == 1U);
    BOOST_TEST(seen[0].done == 0U);
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

// What is stopped before its first step must have one all the same: somebody waits for what it does at its
// end.
BOOST_AUTO_TEST_CASE(a_stop_before_the_first_step) {
    const images::job_stop early(context.get_executor());
    bool told = false;
    const auto body = [](const images::job_stop& stop, bool& seen) -> task<void> {
        seen = !stop.begin();
        co_return;
    };
    early.now();
    sandboxd::core::spawn(early.strand(), "test", background, body(early, told), early.signal());
    early.now();
    context.run();
    BOOST_TEST(told);
}

BOOST_AUTO_TEST_CASE(a_stop_after_it) {
    const images::job_stop late(context.get_executor());
    int steps = 0;
    const auto body = [](const images::job_stop& stop, int& seen) -> task<void> {
        seen = stop.begin() ? 1 : 0;
        stop.now();
        seen += co_await sandboxd::core::sleep_for(1h) ? 0 : 1;
    };
    sandboxd::core::spawn(late.strand(), "test", background, body(late, steps), late.signal());
    context.run();
    BOOST_TEST(steps == 2);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
