// Closing a session, and the end of the service.

#include "session/service.hpp"

#include <boost/test/unit_test.hpp>

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

BOOST_FIXTURE_TEST_SUITE(closing, test::with_host)

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
    test::service service(host, store, test::test_settings(), test::short_patience());
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
    test::service service(host, store, test::test_settings(), test::short_patience());
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
        test::service service(host, store, test::test_settings(), test::short_patience());
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

// The leak checker of the address sanitizer looks at what the call held.
BOOST_AUTO_TEST_CASE(a_sandbox_that_never_answers_is_outlived_by_its_calls_alone) {
    test::service service(host, store, test::test_settings(), test::short_patience());
    service.open("a");
    host->place_of("a")->frozen = true;
    service.start(service.sessions().exec("a", {"hang", std::nullopt}, nullptr));
    service.until([this] { return host->commands == 1; });
    service.shut(session::shutdown_mode::stop);
    BOOST_TEST(host->places() == std::vector<std::string>{"a"}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
