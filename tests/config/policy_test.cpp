#include "config/fixture.hpp"
#include "config/policy.hpp"

BOOST_AUTO_TEST_SUITE(config_policy)
using namespace config_test;
using namespace sandboxd;

namespace {
settings base() {
    return values_of(load_from({{"RUNTIMES", "a=x,b=y;cpus=1"}, {"MAX_SESSIONS", "20"}}));
}

std::string refusal(const policy_change& change) {
    const auto answer = config::apply(base(), change);
    return answer ? "(no error)" : answer.error().message;
}

using names = std::vector<std::string>;
} // namespace

BOOST_AUTO_TEST_CASE(fields_are_set_cleared_and_named) {
    policy_change change;
    change.max_sessions = {true, std::nullopt};
    change.idle_timeout = {true, 1800}; // the value it has: no change
    change.cpus = {true, 1e-2};
    change.default_runtime = {true, "b"};
    change.runtimes["a"].mem_limit = {true, "64m"};
    change.runtimes["b"].cpus = {true, std::nullopt};
    const auto answer = config::apply(base(), change);
    BOOST_REQUIRE(answer.has_value());
    BOOST_TEST(!answer->values.max_sessions.has_value());
    BOOST_TEST(answer->values.cpus.value() == 0.01);
    BOOST_TEST(answer->values.default_runtime == "b");
    BOOST_TEST((answer->values.runtimes.at(0).mem_limit == "64m"));
    BOOST_TEST(!answer->values.runtimes.at(1).cpus.has_value());
    BOOST_TEST(answer->changed == (names{"default_runtime", "max_sessions", "cpus", "runtimes.a.mem_limit",
                                         "runtimes.b.cpus"}),
               boost::test_tools::per_element());
    BOOST_TEST(config::names_of(change) == (names{"default_runtime", "max_sessions", "idle_timeout", "cpus",
                                                  "runtimes.a.mem_limit", "runtimes.b.cpus"}),
               boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(what_the_start_refuses_is_refused) {
    policy_change change;
    change.execute_timeout = {true, std::nullopt};
    BOOST_TEST(refusal(change) == "execute_timeout must not be null");
    change = {};
    change.max_open_sessions = {true, 19};
    BOOST_TEST(refusal(change) ==
               "max_open_sessions (19) is below max_sessions (20): a resident session is an "
               "open one too");
    change = {};
    change.memswap_limit = {true, "512m"};
    BOOST_TEST(refusal(change) == "memswap_limit '512m' is below mem_limit '1g'");
    change = {};
    change.runtimes["a"].mem_limit = {true, "1k"};
    BOOST_TEST(holds(refusal(change), "runtimes.a.mem_limit='1k'"));
    change = {};
    change.runtimes["c"] = {};
    BOOST_TEST(refusal(change) == "Unknown runtime 'c'. Allowed: a, b");
    change = {};
    change.default_runtime = {true, ""};
    BOOST_TEST(refusal(change) == "Unknown runtime ''. Allowed: a, b");
}

BOOST_AUTO_TEST_CASE(the_later_change_wins_field_by_field) {
    policy_change first;
    first.max_sessions = {true, 3};
    first.cpus = {true, 1.0};
    first.runtimes["a"].cpus = {true, 1.0};
    first.runtimes["a"].pids_limit = {true, 7};
    policy_change later;
    later.max_sessions = {true, std::nullopt};
    later.runtimes["a"].cpus = {true, 2.0};
    later.runtimes["b"].cpus = {true, 3.0};
    config::merge(first, later);
    policy_change expected;
    expected.max_sessions = {true, std::nullopt};
    expected.cpus = {true, 1.0};
    expected.runtimes["a"].cpus = {true, 2.0};
    expected.runtimes["a"].pids_limit = {true, 7};
    expected.runtimes["b"].cpus = {true, 3.0};
    BOOST_TEST((first == expected));
}

BOOST_AUTO_TEST_SUITE_END()
