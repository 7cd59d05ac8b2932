#include "session/service.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/test/unit_test.hpp>

#include <regex>

using namespace sandboxd;
using test::named;
using namespace std::chrono_literals;

namespace {
/// A disk that is full while `full` says so: nothing can be closed then.
class full_store final : public store::session_store {
public:
    full_store(std::shared_ptr<store::session_store> real, std::function<bool()> full)
        : real_(std::move(real)), full_(std::move(full)) {}

    task<result<store::contents>> load() override { return real_->load(); }
    task<result<std::vector<store::event_record>>> events(std::int64_t order) override {
        return real_->events(order);
    }
    task<result<void>> commit(std::vector<store::change> changes) override {
        for (const auto& one : changes) {
            if (std::holds_alternative<store::drop_session>(one) && full_()) {
                ++refused;
                co_return error{errc::io, "disk full"};
            }
        }
        co_return co_await real_->commit(std::move(changes));
    }
    void close() override { real_->close(); }

    int refused = 0;

private:
    std::shared_ptr<store::session_store> real_;
    std::function<bool()> full_;
};
} // namespace

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

BOOST_AUTO_TEST_CASE(a_session_that_fills_the_disk_can_be_closed) {
    const auto full = std::make_shared<full_store>(store, [host = host] {
        const auto place = host->place_of("a");
        return place && place->alive;
    });
    test::service service(host, full);
    service.open("a");
    BOOST_TEST(service.get(service.sessions().close("a", false)).has_value());
    BOOST_TEST(full->refused == 1);
    service.shut(session::shutdown_mode::keep);
    test::service next(host, store);
    BOOST_TEST(next.sessions().health_numbers().open_sessions == 0);
}

BOOST_AUTO_TEST_CASE(a_close_that_can_not_be_recorded_fails_but_leaves_no_sandbox) {
    const auto full = std::make_shared<full_store>(store, [] { return true; });
    test::service service(host, full);
    const auto token = service.open("a").token;
    const auto place = host->place_of("a");
    const auto answer = service.get(service.sessions().close("a", false));
    CHECK_ERROR(answer, errc::internal, "The close could not be recorded");
    BOOST_TEST(!place->alive);
    service.shut(session::shutdown_mode::keep);
    test::service next(host, store); // comes back without a sandbox, and can be closed
    BOOST_TEST((next.sessions().authorize(token, "a") == auth::scope::session));
    BOOST_TEST(next.get(next.sessions().close("a", false)).has_value());
    BOOST_TEST(next.sessions().health_numbers().open_sessions == 0);
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
    CHECK_ERROR(answer, errc::capacity, "Tenant 'acme' has 1 of at most 1 sessions");
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
    CHECK_ERROR(third, errc::capacity, "Tenant 'acme' has 1 of at most 1 sessions");
    const auto fourth = service.get(service.sessions().open(named("d")));
    CHECK_ERROR(fourth, errc::capacity, "Session limit of 2 reached: close one first");
    host->hold_builds = false;
    BOOST_TEST(service.ready(first).has_value());
    BOOST_TEST(service.ready(second).has_value());
}

BOOST_AUTO_TEST_CASE(a_close_leaves_nothing_but_a_tombstone) {
    test::service service(host, store);
    const auto old = service.open("a");
    BOOST_TEST(service.get(service.sessions().close("a", false)).has_value());
    BOOST_TEST(host->places().empty());
    BOOST_TEST((service.sessions().authorize(old.token, "a") == auth::scope::tombstone));
    BOOST_TEST((service.sessions().authorize(old.token, "b") == auth::scope::none));
    const auto again = service.get(service.sessions().close("a", false));
    CHECK_ERROR(again, errc::not_found, "No such session: a");
    const auto fresh = service.open("a");
    BOOST_TEST(fresh.token != old.token);
    BOOST_TEST((service.sessions().authorize(old.token, "a") == auth::scope::tombstone));
    BOOST_TEST((service.sessions().authorize(fresh.token, "a") == auth::scope::session));
    BOOST_TEST(service.sessions().health_numbers().open_sessions == 1);
}

BOOST_AUTO_TEST_CASE(a_close_ends_what_is_pending_at_once) {
    test::service service(host, store);
    service.open("a");
    const auto run = service.start(
        service.sessions().run("a", {std::string(32, 'a'), {"hang"}, {}, std::nullopt}, nullptr));
    const auto exec = service.start(service.sessions().exec("a", {"hang", std::nullopt}, nullptr));
    service.until([this] { return host->commands == 2; });
    host->place_of("a")->frozen = true; // neither the commands nor the stop will answer
    const auto place = host->place_of("a");
    const auto closed = service.start(service.sessions().close("a", false));
    const auto ended = service.ready(run);
    CHECK_ERROR(ended, errc::gone, "Session a was closed");
    const auto shown = service.ready(exec);
    BOOST_REQUIRE(shown.has_value());
    BOOST_TEST(shown->output == "Error: Session a was closed");
    BOOST_TEST(shown->end.exit_code.value() == 1);
    // The stop does not answer: quarantine, not a hang.
    BOOST_TEST(service.ready(closed).has_value());
    BOOST_TEST(service.sessions().health_numbers().quarantined == 1);
    BOOST_TEST(service.sessions().health_numbers().sessions == 0);
    BOOST_TEST(host->places().size() == 1U);
    service.open("b"); // others are not delayed
    place->frozen = false;
    service.until([this] { return host->places() == std::vector<std::string>{"b"}; });
    BOOST_TEST(service.sessions().health_numbers().quarantined == 0);
}

BOOST_AUTO_TEST_CASE(an_open_waits_for_the_close_of_its_id) {
    test::service service(host, store);
    const auto old = service.open("a");
    host->place_of("a")->frozen = true;
    const auto closing = service.start(service.sessions().close("a", false));
    service.until([&] { return service.sessions().authorize(old.token, "a") == auth::scope::tombstone; });
    BOOST_TEST(service.get(service.sessions().list(false)).sessions.empty());
    const auto place = host->place_of("a");
    const auto fresh = service.open("a");
    BOOST_TEST(service.ready(closing).has_value());
    BOOST_TEST(fresh.token != old.token);
    place->frozen = false;
}

BOOST_AUTO_TEST_CASE(an_undelivered_open_is_closed_only_when_nobody_can_find_it) {
    test::service service(host, store);
    const auto named_one = service.open("a");
    service.sessions().undelivered(named_one);
    const auto answer = service.get(service.sessions().open({}));
    BOOST_REQUIRE(answer.has_value());
    BOOST_TEST(host->places().size() == 2U);
    service.sessions().undelivered(*answer);
    service.until([this] { return host->places() == std::vector<std::string>{"a"}; });
    BOOST_TEST((service.sessions().authorize(answer->token, answer->session.id) == auth::scope::tombstone));
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
    const auto began = std::chrono::steady_clock::now();
    const auto list = service.get(service.sessions().list(false));
    BOOST_TEST((std::chrono::steady_clock::now() - began < 5s)); // a guard against hanging, no measurement
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

BOOST_AUTO_TEST_CASE(a_purge_removes_the_workspace_and_a_plain_close_keeps_it) {
    const test::temporary_directory root;
    auto config = test::test_settings();
    config.workspace_root = root.path().string();
    test::service service(host, store, config);
    service.open("a");
    const auto workspace = root.path() / "a" / "workspace";
    BOOST_TEST(std::filesystem::is_directory(workspace));
    BOOST_TEST(service.get(service.sessions().close("a", false)).has_value());
    BOOST_TEST(std::filesystem::is_directory(workspace));
    auto attach = named("a");
    attach.attach = true;
    BOOST_TEST(service.get(service.sessions().open(attach)).has_value());
    BOOST_TEST(service.get(service.sessions().close("a", true)).has_value());
    BOOST_TEST(!std::filesystem::exists(root.path() / "a"));
    BOOST_TEST(service.get(service.sessions().open(attach)).has_error());
}

BOOST_AUTO_TEST_CASE(a_shutdown_keeps_or_closes) {
    {
        test::service service(host, store);
        service.open("a");
        service.open("b");
        service.shut(session::shutdown_mode::keep);
        const auto refused = service.get(service.sessions().open(named("c")));
        CHECK_ERROR(refused, errc::unavailable, "The service is shutting down");
    }
    BOOST_TEST(host->places().size() == 2U);
    {
        test::service service(host, store);
        BOOST_TEST(service.get(service.sessions().list(false)).sessions.size() == 2U);
        host->place_of("a")->frozen = true;
        const auto place = host->place_of("a");
        const auto command = service.start(service.sessions().exec("b", {"hang", std::nullopt}, nullptr));
        service.until([this] { return host->commands == 1; });
        service.shut(session::shutdown_mode::stop);
        BOOST_TEST(service.ready(command)->output == "Error: Session b was closed");
        BOOST_TEST(host->places() == std::vector<std::string>{"a"}, boost::test_tools::per_element());
        place->frozen = false;
        service.pass(20ms);
    }
    test::service service(host, store);
    BOOST_TEST(service.get(service.sessions().list(false)).sessions.empty());
    BOOST_TEST(host->places().empty());
}

BOOST_AUTO_TEST_SUITE_END()
