// What happens by itself, under a clock that the test moves.

#include "session/service.hpp"
#include "session/workspace_ages.hpp"

#include <boost/test/unit_test.hpp>

#include <fstream>

using namespace sandboxd;
using namespace std::chrono_literals;

namespace {
struct fixture : test::with_host {
    test::temporary_directory root;

    [[nodiscard]] settings config() const {
        auto made = test::test_settings();
        made.workspace_root = root.path().string();
        made.idle_timeout = 100;
        made.cleanup_interval = 10;
        return made;
    }
};

using directories = std::vector<std::pair<std::string, double>>;
using names = std::vector<std::string>;
} // namespace

BOOST_FIXTURE_TEST_SUITE(reaper, fixture)

BOOST_AUTO_TEST_CASE(an_idle_session_is_closed_and_its_workspace_stays) {
    test::service service(host, store, config());
    const auto token = service.open("a").token;
    service.later(100s); // strictly greater
    BOOST_TEST(service.state("a") == "running");
    service.later(10s);
    service.until([&service] { return service.state("a") == "none"; });
    BOOST_TEST((service.sessions().authorize(token, "a") == auth::scope::tombstone));
    BOOST_TEST(std::filesystem::is_directory(root.path() / "a" / "workspace"));
    service.until([this] { return host->places().empty(); });
}

BOOST_AUTO_TEST_CASE(a_clock_that_is_set_by_hours_reaps_nothing_and_keeps_nothing) {
    test::service service(host, store, config());
    service.open("a");
    for (const double step : {5 * 3600.0, -10 * 3600.0}) {
        service.clock().step_wall(step);
        service.later(11s);
        BOOST_TEST(service.state("a") == "running");
    }
    service.clock().step_wall(-5 * 3600.0);
    service.later(80s);
    service.until([&service] { return service.state("a") == "none"; });
}

BOOST_AUTO_TEST_CASE(work_in_flight_is_never_reaped) { // N9.5, H.N.88
    test::service service(host, store, config());
    service.open("a");
    const auto command = service.start(service.sessions().exec("a", {"held", std::nullopt}, nullptr));
    service.until([this] { return host->commands == 1; });
    service.later(500s);
    BOOST_TEST(service.state("a") == "running");
    host->let_go = true;
    BOOST_TEST(service.ready(command)->end.exit_code.value() == 0);
    service.later(11s);
    service.until([&service] { return service.state("a") == "none"; });
}

BOOST_AUTO_TEST_CASE(a_dead_session_is_reaped_too) {
    test::service service(host, store, config());
    service.open("a");
    host->place_of("a")->alive = false;
    service.later(111s);
    service.until([&service] { return service.state("a") == "none"; });
}

BOOST_AUTO_TEST_CASE(the_limit_is_the_one_in_force_when_the_sandbox_was_built) {
    test::service service(host, store, config());
    service.open("a");
    policy_change change;
    change.idle_timeout = {true, 1000};
    BOOST_TEST(service.get(service.sessions().change_policy(change)).has_value());
    service.open("b");
    service.later(111s);
    service.until([&service] { return service.state("a") == "none"; });
    BOOST_TEST(service.state("b") == "running");
}

BOOST_AUTO_TEST_CASE(a_forgotten_sleeper_is_closed) {
    auto limits = config();
    limits.max_sessions = 1;
    limits.evict_idle_after = 0;
    limits.idle_timeout = 100;
    test::service service(host, store, limits);
    service.open("a");
    service.open("b");
    BOOST_TEST(service.state("a") == "hibernated");
    service.later(89s);
    service.exec("b", "true");
    service.later(10s);
    BOOST_TEST(service.state("a") == "hibernated");
    service.later(11s); // at least
    service.until([&service] { return service.state("a") == "none"; });
    BOOST_TEST(service.state("b") == "running");
    BOOST_TEST(std::filesystem::is_directory(root.path() / "a" / "workspace"));
}

BOOST_AUTO_TEST_CASE(unused_workspaces_are_removed_and_nothing_else) {
    auto limits = config();
    limits.workspace_ttl = 500;
    limits.idle_timeout = 100'000;
    std::filesystem::create_directories(root.path() / "old" / "workspace");
    std::filesystem::create_directories(root.path() / "ancient" / "workspace");
    std::filesystem::last_write_time(root.path() / "ancient",
                                     std::filesystem::file_time_type::clock::now() - 600s);
    std::filesystem::create_directories(root.path() / ".pool" / "x");
    std::filesystem::create_directories(root.path() / ".swept-0011" / "x");
    std::ofstream(root.path() / "file") << "kept";
    test::service service(host, store, limits);
    service.open("open");
    // The test's clock is far from the host's: only what the steady one tells may count.
    service.clock().step_wall(static_cast<double>(::time(nullptr)) - service.clock().wall());
    service.later(11s);
    service.until([this] { return !std::filesystem::exists(root.path() / "ancient"); });
    BOOST_TEST(!std::filesystem::exists(root.path() / ".swept-0011"));
    service.clock().step_wall(50 * 3600.0);
    service.later(480s);
    BOOST_TEST(std::filesystem::exists(root.path() / "old"));
    service.later(30s);
    service.until([this] { return !std::filesystem::exists(root.path() / "old"); });
    BOOST_TEST(std::filesystem::exists(root.path() / "open" / "workspace"));
    BOOST_TEST(std::filesystem::exists(root.path() / ".pool" / "x"));
    BOOST_TEST(std::filesystem::exists(root.path() / "file"));
    BOOST_TEST(service.state("open") == "running");
}

BOOST_AUTO_TEST_CASE(what_was_kept_for_long_is_removed) {
    auto limits = config();
    limits.persist_containers = true;
    limits.container_ttl = 50;
    test::service service(host, store, limits);
    service.open("a");
    service.open("b");
    BOOST_TEST(service.get(service.sessions().close("a", false)).has_value());
    service.later(51s);
    service.until([this] { return host->places() == std::vector<std::string>{"b"}; });
    BOOST_TEST((*service.get(store->load())).kept.empty());
    BOOST_TEST(std::filesystem::is_directory(root.path() / "a" / "workspace"));
}

BOOST_AUTO_TEST_CASE(ages_are_told_by_the_steady_clock) {
    session::workspace_ages ages;
    const auto begin = session::workspace_ages::time_point(1h);
    const double wall = 1'700'000'000;
    const directories all{{"a", wall - 50}, {"b", wall - 150}, {"future", wall + 1000}};
    BOOST_TEST(ages.look(all, 100s, begin, wall) == names{"b"}, boost::test_tools::per_element());
    // Set forward by an hour: only what time has really passed counts.
    BOOST_TEST(ages.look({{"a", wall - 50}, {"new", wall + 5}}, 100s, begin + 10s, wall + 3610) == names{},
               boost::test_tools::per_element());
    BOOST_TEST(ages.look({{"a", wall - 50}, {"new", wall + 5}}, 100s, begin + 20s, wall + 3620) == names{},
               boost::test_tools::per_element());
    BOOST_TEST(ages.look({{"a", wall - 50}, {"new", wall + 5}}, 100s, begin + 106s, wall + 3706) ==
                   (names{"a", "new"}),
               boost::test_tools::per_element());
    // Used again.
    BOOST_TEST(ages.look({{"a", wall + 3706}}, 100s, begin + 107s, wall + 3707) == names{},
               boost::test_tools::per_element());
    // Back by two hours: its time has not come yet, and it ages all the same.
    BOOST_TEST(ages.look({{"a", wall + 3706}}, 100s, begin + 150s, wall - 3450) == names{},
               boost::test_tools::per_element());
    BOOST_TEST(ages.look({{"a", wall + 3706}}, 100s, begin + 208s, wall - 3392) == names{"a"},
               boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
