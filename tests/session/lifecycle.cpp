// Opening, listing and what is told of sessions.

#include "session/service.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/test/unit_test.hpp>

#include <regex>

using namespace sandboxd;
using test::named;
using namespace std::chrono_literals;

BOOST_FIXTURE_TEST_SUITE(lifecycle, test::with_host)

BOOST_AUTO_TEST_CASE(an_open_answers_with_a_token_that_works_for_that_session_only) {
    test::service service(host, store);
    const auto a = service.open("a");
    const auto b = service.open("b");
    BOOST_TEST(a.created);
    BOOST_TEST(!a.generated);
    BOOST_TEST(a.session.id == "a");
    BOOST_TEST(a.session.runtime == "python");
    BOOST_TEST(a.session.alive);
    BOOST_TEST(a.session.created_at == 1'700'000'000.5);
    BOOST_TEST(a.token.size() == 43U);
    auto& sessions = service.sessions();
    BOOST_TEST((sessions.authorize(a.token, "a") == auth::scope::session));
    BOOST_TEST((sessions.authorize(a.token, "b") == auth::scope::none));
    BOOST_TEST((sessions.authorize(b.token, "a") == auth::scope::none));
    BOOST_TEST((sessions.authorize("service-token", "a") == auth::scope::service));
    BOOST_TEST((sessions.authorize("service-token", "nobody") == auth::scope::service));
    BOOST_TEST((sessions.authorize("", "a") == auth::scope::none));
    BOOST_TEST(host->builds == 2);
}

BOOST_AUTO_TEST_CASE(a_generated_id_has_its_form) {
    test::service service(host, store);
    const auto answer = service.get(service.sessions().open({}));
    BOOST_REQUIRE(answer.has_value());
    BOOST_TEST(answer->generated);
    BOOST_TEST(std::regex_match(answer->session.id, std::regex("s-[0-9a-f]{16}")));
}

BOOST_AUTO_TEST_CASE(failures_of_an_open_come_with_the_texts_of_the_contract) {
    auto config = test::test_settings();
    config.max_sessions = 3;
    config.max_sessions_per_tenant = 1;
    test::service service(host, store, config);
    auto& sessions = service.sessions();
    auto unknown = named("a");
    unknown.runtime = "cobol";
    unknown.attach = true;
    auto answer = service.get(sessions.open(unknown));
    CHECK_ERROR(answer, errc::invalid, "Unknown runtime 'cobol'. Allowed: go, python");

    session::open_request nameless;
    nameless.attach = true;
    answer = service.get(sessions.open(nameless));
    CHECK_ERROR(answer, errc::invalid, "To attach, name the session: attach needs a session_id");

    auto attach = named("a");
    attach.attach = true;
    answer = service.get(sessions.open(attach));
    CHECK_ERROR(answer, errc::not_found,
                "There is nothing to attach to: no session a is open and nothing of it is kept");

    auto first = named("a");
    first.tenant = "acme";
    BOOST_TEST(service.get(sessions.open(first)).has_value());
    answer = service.get(sessions.open(first));
    CHECK_ERROR(answer, errc::exists, "Session exists: a");

    auto other = named("a");
    other.reuse = true;
    other.runtime = "go";
    answer = service.get(sessions.open(other));
    CHECK_ERROR(answer, errc::exists, "Session a runs 'python'. Close it before changing runtime");
    other.runtime = ""; // counts as another one (contract 1.4.3)
    BOOST_TEST(service.get(sessions.open(other)).has_error());

    auto second = named("b");
    second.tenant = "acme";
    answer = service.get(sessions.open(second));
    CHECK_ERROR(answer, errc::capacity, "Tenant 'acme' has 1 of at most 1 sessions: close one first");
    second.tenant = "umbrella";
    BOOST_TEST(service.get(sessions.open(second)).has_value());
    service.open("c");
    answer = service.get(sessions.open(named("d")));
    CHECK_ERROR(answer, errc::capacity, "Session limit of 3 reached: close one first");
    BOOST_TEST(host->builds == 3);
    BOOST_TEST(sessions.health_numbers().sessions == 3);
}

BOOST_AUTO_TEST_CASE(the_open_ceiling_has_its_text) {
    auto config = test::test_settings();
    config.max_open_sessions = 1;
    test::service service(host, store, config);
    service.open("a");
    const auto answer = service.get(service.sessions().open(named("b")));
    CHECK_ERROR(answer, errc::capacity,
                "The service keeps at most 1 sessions open and all of them are in use");
}

BOOST_AUTO_TEST_CASE(reuse_and_attach_find_the_open_session_and_its_token) {
    test::service service(host, store);
    const auto first = service.open("a");
    for (const bool reuse : {true, false}) {
        auto again = named("a");
        again.reuse = reuse;
        again.attach = !reuse;
        const auto answer = service.get(service.sessions().open(again));
        BOOST_REQUIRE(answer.has_value());
        BOOST_TEST(answer->token == first.token);
        BOOST_TEST(!answer->created);
    }
    BOOST_TEST(host->builds == 1);
    auto fresh = named("b");
    fresh.reuse = true;
    const auto opened = service.get(service.sessions().open(fresh));
    BOOST_REQUIRE(opened.has_value());
    BOOST_TEST(opened->created);
}

BOOST_AUTO_TEST_CASE(a_failed_start_gives_back_id_and_place) {
    auto config = test::test_settings();
    config.max_sessions = 1;
    test::service service(host, store, config);
    host->fail_builds = true;
    auto answer = service.get(service.sessions().open(named("a")));
    CHECK_ERROR(answer, errc::start_failed, "The sandbox could not be started: the daemon is on strike");
    host->fail_builds = false;
    host->fail_prepare = true;
    answer = service.get(service.sessions().open(named("a")));
    CHECK_ERROR(answer, errc::start_failed, "The sandbox could not be started: no such image");
    host->fail_prepare = false;
    BOOST_TEST(service.sessions().health_numbers().sessions == 0);
    BOOST_TEST(host->places().empty());
    BOOST_TEST(test::get(service.context(), store->load())->slots.empty());
    service.open("a");
}

BOOST_AUTO_TEST_CASE(two_opens_of_one_id_at_once_end_in_one_session) {
    test::service service(host, store);
    host->hold_builds = true;
    const auto first = service.start(service.sessions().open(named("a")));
    service.until([this] { return host->builds == 1; });
    const auto second = service.get(service.sessions().open(named("a")));
    CHECK_ERROR(second, errc::busy, "Session a is still opening");
    const auto closed = service.get(service.sessions().close("a", false));
    CHECK_ERROR(closed, errc::not_found, "No such session: a");
    const auto used = service.get(service.sessions().exec("a", {"true", std::nullopt}, nullptr));
    CHECK_ERROR(used, errc::not_found, "No such session: a");
    host->hold_builds = false;
    const auto winner = service.ready(first);
    BOOST_REQUIRE(winner.has_value());
    BOOST_TEST((service.sessions().authorize(winner->token, "a") == auth::scope::session));
    BOOST_TEST(host->builds == 1);
}

BOOST_AUTO_TEST_CASE(opens_in_progress_count_against_the_ceilings) {
    auto config = test::test_settings();
    config.max_sessions = 2;
    config.max_sessions_per_tenant = 1;
    test::service service(host, store, config);
    host->hold_builds = true;
    auto request = named("a");
    request.tenant = "acme";
    const auto first = service.start(service.sessions().open(request));
    const auto second = service.start(service.sessions().open(named("b")));
    service.until([this] { return host->builds == 2; });
    request.session_id = "c";
    const auto third = service.get(service.sessions().open(request));
    CHECK_ERROR(third, errc::capacity, "Tenant 'acme' has 1 of at most 1 sessions: close one first");
    const auto fourth = service.get(service.sessions().open(named("d")));
    CHECK_ERROR(fourth, errc::capacity, "Session limit of 2 reached: close one first");
    host->hold_builds = false;
    BOOST_TEST(service.ready(first).has_value());
    BOOST_TEST(service.ready(second).has_value());
}

BOOST_AUTO_TEST_CASE(an_open_goes_on_when_its_client_has_left) {
    test::service service(host, store);
    host->hold_builds = true;
    for (const bool with_id : {true, false}) {
        boost::asio::cancellation_signal leave;
        bool thrown = false;
        boost::asio::co_spawn(
            boost::asio::make_strand(service.context().get_executor()),
            service.sessions().open(with_id ? named("a") : session::open_request{}),
            boost::asio::bind_cancellation_slot(
                leave.slot(), [&thrown](const std::exception_ptr& how, const result<session::opened>&) {
                    thrown = !!how;
                }));
        const int before = host->builds;
        service.until([&] { return host->builds == before + 1; });
        leave.emit(boost::asio::cancellation_type::terminal);
        service.until([&thrown] { return thrown; });
    }
    host->hold_builds = false;
    // The one whose client chose the id stands; nobody could find the other (N16.33).
    service.until([&] {
        const auto list = service.get(service.sessions().list(false));
        return list.sessions.size() == 1 && list.sessions[0].id == "a" &&
               host->places() == std::vector<std::string>{"a"};
    });
}

BOOST_AUTO_TEST_CASE(a_listing_is_in_the_order_of_opening_and_fast) {
    auto config = test::test_settings();
    config.max_sessions = 20'000;
    config.max_open_sessions = 30'000;
    config.max_sessions_per_tenant = 7;
    test::service service(host, store, config);
    constexpr int many = 10'000;
    std::vector<std::shared_ptr<std::optional<result<session::opened>>>> answers;
    for (int i = 0; i < many; ++i) {
        answers.push_back(
            service.start(service.sessions().open(named("s" + std::to_string(i * 7919 % many)))));
    }
    for (const auto& each : answers) {
        BOOST_REQUIRE(service.ready(each).has_value());
    }
    service.clock().advance(1500ms);
    const auto list = service.get(service.sessions().list(false));
    BOOST_REQUIRE(list.sessions.size() == std::size_t{many});
    BOOST_TEST(list.limit.value() == 20'000);
    BOOST_TEST(list.open_limit.value() == 30'000);
    BOOST_TEST(list.tenant_limit.value() == 7);
    for (int i = 0; i < many; ++i) {
        BOOST_REQUIRE(list.sessions[static_cast<std::size_t>(i)].id == "s" + std::to_string(i * 7919 % many));
    }
    BOOST_TEST(list.sessions[0].idle_seconds == 1.5);
    BOOST_TEST(!list.sessions[0].usage.has_value());
}

BOOST_AUTO_TEST_CASE(usage_is_sampled_when_asked_for_and_cached) {
    test::service service(host, store);
    service.open("a");
    service.open("b");
    auto list = service.get(service.sessions().list(true));
    BOOST_TEST(list.sessions.at(0).usage.value().pids.value() == 1U);
    BOOST_TEST(list.sessions.at(1).usage.value().pids.value() == 1U);
    BOOST_TEST(service.get(service.sessions().inspect("a", true))->usage.value().pids.value() == 1U);
    BOOST_TEST(!service.get(service.sessions().inspect("a", false))->usage.has_value());
    service.clock().advance(5001ms);
    BOOST_TEST(service.get(service.sessions().inspect("a", true))->usage.value().pids.value() == 2U);
    host->place_of("b")->alive = false;
    list = service.get(service.sessions().list(true));
    BOOST_TEST(!list.sessions.at(1).usage.has_value());
    BOOST_TEST(!list.sessions.at(1).alive);
    BOOST_TEST(!list.sessions.at(1).hibernated);
}

BOOST_AUTO_TEST_CASE(health_counts_the_dead_too) {
    auto config = test::test_settings();
    config.max_sessions = 5;
    test::service service(host, store, config);
    service.open("a");
    service.open("b");
    host->place_of("b")->alive = false;
    const auto health = service.sessions().health_numbers();
    BOOST_TEST(health.sessions == 2);
    BOOST_TEST(health.open_sessions == 2);
    BOOST_TEST(health.limit.value() == 5);
    BOOST_TEST(!health.open_limit.has_value());
    BOOST_TEST(health.runtimes == (std::vector<std::string>{"go", "python"}),
               boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
