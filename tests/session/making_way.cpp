// Who makes way at a ceiling (session/room.cpp).

#include "session/sleeping.hpp"

#include <boost/test/unit_test.hpp>

using namespace sandboxd;
using test::failure;
using test::hibernated_records;
using test::named;
using test::reusing;
using namespace std::chrono_literals;

BOOST_FIXTURE_TEST_SUITE(making_way, test::sleeping_fixture)

BOOST_AUTO_TEST_CASE(at_the_ceiling_the_longest_idle_session_makes_way) {
    test::service service(host, store, config(2));
    auto& sessions = service.sessions();
    const auto token = service.open("a").token;
    service.clock().advance(10s);
    service.open("b");
    service.clock().advance(49s);
    BOOST_TEST(failure(service.get(sessions.open(named("c")))) ==
               "capacity: Session limit of 2 reached: close one first"); // nobody is idle for 60 s yet
    service.clock().advance(1s);
    service.open("c");
    BOOST_TEST(service.state("a") == "hibernated");
    BOOST_TEST(service.state("b") == "running");
    BOOST_TEST(service.state("c") == "running");
    BOOST_TEST(host->places() == (std::vector<std::string>{"b", "c"}), boost::test_tools::per_element());
    BOOST_TEST(sessions.health_numbers().sessions == 2);
    BOOST_TEST(sessions.health_numbers().open_sessions == 3);
    BOOST_TEST(hibernated_records(service, *store) == 1U);
    BOOST_TEST((sessions.authorize(token, "a") == auth::scope::session));
    // Shown as the moment it fell asleep, its usage is gone.
    const auto info = *service.get(sessions.inspect("a", true));
    BOOST_TEST(info.last_activity == 1'700'000'060.5);
    BOOST_TEST(!info.usage.has_value());
    BOOST_TEST(!info.alive);
}

BOOST_AUTO_TEST_CASE(a_session_whose_files_would_be_lost_never_makes_way) {
    {
        auto rootless = config(std::nullopt);
        rootless.workspace_root.reset();
        rootless.evict_idle_after.reset();
        test::service service(host, store, rootless);
        service.open("a");
    }
    test::service service(host, store, config(2)); // the service got its workspace root only now
    service.later(50s);
    service.open("b");
    service.later(100s);
    service.open("c");
    BOOST_TEST(service.state("a") == "running");
    BOOST_TEST(service.state("b") == "hibernated");
    BOOST_TEST(failure(service.get(service.sessions().open(named("d")))) ==
               "capacity: Session limit of 2 reached: close one first");
    BOOST_TEST(service.exec("a", "echo here").output == "here\n");
}

BOOST_AUTO_TEST_CASE(a_session_with_a_command_in_flight_never_makes_way) {
    test::service service(host, store, config(1));
    service.open("a");
    const auto command = service.start(service.sessions().exec("a", {"held", std::nullopt}, nullptr));
    service.until([this] { return host->commands == 1; });
    service.clock().advance(60s);
    BOOST_TEST(failure(service.get(service.sessions().open(named("b")))) ==
               "capacity: Session limit of 1 reached: close one first");
    host->let_go = true;
    BOOST_TEST(service.ready(command)->end.exit_code.value() == 0);
    service.clock().advance(60s);
    BOOST_TEST(failure(service.get(service.sessions().open(named("b")))) == "opened");
}

BOOST_AUTO_TEST_CASE(an_open_in_progress_counts_and_the_idle_one_makes_way) { // N16.6, N17 H.N.87
    test::service service(host, store, config(2));
    service.open("idle");
    service.clock().advance(60s);
    host->hold_builds = true;
    const auto second = service.start(service.sessions().open(named("second")));
    service.until([this] { return host->builds == 2; });
    const auto third = service.start(service.sessions().open(named("third")));
    service.until([this] { return host->builds == 3; });
    BOOST_TEST(service.state("idle") == "hibernated");
    BOOST_TEST(failure(service.get(service.sessions().open(named("fourth")))) ==
               "capacity: Session limit of 2 reached: close one first");
    host->hold_builds = false;
    BOOST_TEST(failure(service.ready(second)) == "opened");
    BOOST_TEST(failure(service.ready(third)) == "opened");
}

BOOST_AUTO_TEST_CASE(two_opens_at_a_ceiling_of_one) { // N17 H.N.86
    test::service service(host, store, config(1));
    const auto first = service.start(service.sessions().open(named("a")));
    const auto second = service.start(service.sessions().open(named("b")));
    const std::multiset<std::string> answers{failure(service.ready(first)), failure(service.ready(second))};
    BOOST_TEST((answers == std::multiset<std::string>{
                               "opened", "capacity: Session limit of 1 reached: close one first"}));
}

BOOST_AUTO_TEST_CASE(at_the_open_ceiling_the_one_asleep_longest_is_closed) {
    auto limits = config(1);
    limits.max_open_sessions = 3;
    test::service service(host, store, limits);
    auto& sessions = service.sessions();
    const auto token = service.open("a").token;
    for (const char* id : {"b", "c"}) {
        service.clock().advance(60s);
        service.open(id);
    }
    BOOST_TEST(service.state("a") == "hibernated");
    BOOST_TEST(service.state("b") == "hibernated");
    // An open that fails has closed nobody (N19.15).
    BOOST_TEST(failure(service.get(sessions.open(named("d")))) ==
               "capacity: Session limit of 1 reached: close one first");
    BOOST_TEST(service.state("a") == "hibernated");
    service.clock().advance(60s);
    service.open("d");
    BOOST_TEST(service.state("a") == "none");
    BOOST_TEST((sessions.authorize(token, "a") == auth::scope::tombstone));
    BOOST_TEST(std::filesystem::is_directory(root.path() / "a" / "workspace")); // closed, not purged
    BOOST_TEST(sessions.health_numbers().open_sessions == 3);
}

BOOST_AUTO_TEST_CASE(a_tenant_may_replace_its_own_sleeping_session) {
    auto limits = config(1);
    limits.max_open_sessions = 2;
    limits.max_sessions_per_tenant = 2;
    test::service service(host, store, limits);
    for (const char* id : {"a", "b", "c"}) {
        auto request = named(id);
        request.tenant = "acme";
        BOOST_TEST(failure(service.get(service.sessions().open(request))) == "opened");
        service.clock().advance(60s);
    }
    BOOST_TEST(service.state("a") == "none");
}

BOOST_AUTO_TEST_SUITE_END()
