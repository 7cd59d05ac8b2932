// Falling asleep, waking, and what is kept in a slot.

#include "session/sleeping.hpp"

#include <boost/test/unit_test.hpp>

#include <fstream>

using namespace sandboxd;
using test::failure;
using test::hibernated_records;
using test::named;
using test::reusing;
using namespace std::chrono_literals;

BOOST_FIXTURE_TEST_SUITE(sleeping, test::sleeping_fixture)

BOOST_AUTO_TEST_CASE(a_command_wakes_and_the_log_goes_on) {
    test::service service(host, store, config(1));
    service.open("a");
    BOOST_TEST(service.exec("a", "echo one").output == "one\n");
    service.clock().advance(60s);
    service.open("b");
    BOOST_TEST(service.state("a") == "hibernated");
    BOOST_TEST(service.events("a").events.size() == 1U); // read from the store
    BOOST_TEST(service.events("a").events.at(0).target == "echo one");
    BOOST_TEST(service.events("a", 1).events.empty());
    BOOST_TEST(service.events("a", 1).latest_seq == 1);
    service.clock().advance(60s);
    BOOST_TEST(service.exec("a", "echo two").output == "two\n");
    BOOST_TEST(service.state("a") == "running");
    BOOST_TEST(service.state("b") == "hibernated");
    const auto page = service.events("a");
    BOOST_REQUIRE(page.events.size() == 2U);
    BOOST_TEST(page.events[0].seq == 1);
    BOOST_TEST(page.events[1].seq == 2);
    BOOST_TEST(page.events[1].target == "echo two");
    BOOST_TEST(service.sessions().health_numbers().sessions == 1);
    BOOST_TEST(hibernated_records(service, *store) == 1U);
}

BOOST_AUTO_TEST_CASE(a_wake_without_room_is_refused_and_the_session_sleeps_on) {
    test::service service(host, store, config(1));
    auto& sessions = service.sessions();
    service.open("a");
    service.clock().advance(60s);
    service.open("b");
    const auto refused = service.get(sessions.exec("a", {"true", std::nullopt}, nullptr));
    BOOST_REQUIRE(refused.has_error());
    BOOST_TEST((refused.error().code == errc::capacity));
    BOOST_TEST(refused.error().message ==
               "Cannot wake session a: Session limit of 1 reached: close one first");
    BOOST_TEST(failure(service.get(sessions.open(reusing("a")))) ==
               "capacity: Cannot wake session a: Session limit of 1 reached: close one first");
    BOOST_TEST(service.state("a") == "hibernated");
    BOOST_TEST(service.events("a").events.empty()); // a refused wake records nothing (contract 2.11)
    BOOST_TEST(sessions.health_numbers().sessions == 1);
}

BOOST_AUTO_TEST_CASE(reuse_wakes_and_answers_with_the_same_token) {
    test::service service(host, store, config(1));
    const auto token = service.open("a").token;
    service.clock().advance(60s);
    service.open("b");
    service.clock().advance(60s);
    const auto again = service.get(service.sessions().open(reusing("a")));
    BOOST_REQUIRE(again.has_value());
    BOOST_TEST(again->token == token);
    BOOST_TEST(!again->created);
    BOOST_TEST(!again->session.hibernated);
    BOOST_TEST(again->session.alive);
    BOOST_TEST(service.state("b") == "hibernated");
}

BOOST_AUTO_TEST_CASE(a_wake_that_can_not_build_leaves_the_session_asleep) {
    test::service service(host, store, config(1));
    service.open("a");
    service.clock().advance(60s);
    service.open("b");
    BOOST_TEST(service.get(service.sessions().close("b", false)).has_value());
    host->fail_builds = true;
    const auto failed = service.get(service.sessions().exec("a", {"true", std::nullopt}, nullptr));
    BOOST_REQUIRE(failed.has_error());
    BOOST_TEST((failed.error().code == errc::start_failed));
    BOOST_TEST(service.state("a") == "hibernated");
    BOOST_TEST(service.sessions().health_numbers().sessions == 0);
    host->fail_builds = false;
    BOOST_TEST(service.exec("a", "echo up").output == "up\n");
    BOOST_TEST(service.sessions().health_numbers().sessions == 1);
}

BOOST_AUTO_TEST_CASE(a_session_that_can_not_be_put_to_sleep_keeps_its_sandbox) {
    class full_store final : public store::session_store {
    public:
        explicit full_store(std::shared_ptr<store::session_store> real) : real_(std::move(real)) {}
        task<result<store::contents>> load() override { return real_->load(); }
        task<result<std::vector<store::event_record>>> events(std::int64_t order) override {
            return real_->events(order);
        }
        task<result<void>> commit(std::vector<store::change> changes) override {
            for (const auto& one : changes) {
                if (std::holds_alternative<store::set_state>(one)) {
                    co_return error{errc::io, "disk full"};
                }
            }
            co_return co_await real_->commit(std::move(changes));
        }
        void close() override { real_->close(); }

    private:
        std::shared_ptr<store::session_store> real_;
    };
    test::service service(host, std::make_shared<full_store>(store), config(1));
    service.open("a");
    service.clock().advance(60s);
    BOOST_TEST(failure(service.get(service.sessions().open(named("b")))) ==
               "capacity: Session limit reached: the session that was to make way could not be put to sleep");
    BOOST_TEST(service.state("a") == "running");
    BOOST_TEST(service.exec("a", "echo here").output == "here\n");
    BOOST_TEST(host->builds == 1);
    BOOST_TEST(service.sessions().health_numbers().sessions == 1);
    BOOST_TEST(service.sessions().health_numbers().open_sessions == 1);
}

BOOST_AUTO_TEST_CASE(a_sandbox_that_does_not_stop_is_left_in_quarantine_and_its_session_sleeps) {
    test::service service(host, store, config(1), test::short_patience());
    service.open("a");
    const auto place = host->place_of("a");
    place->frozen = true;
    service.clock().advance(60s);
    service.open("b");
    BOOST_TEST(service.state("a") == "hibernated");
    BOOST_TEST(service.sessions().health_numbers().quarantined == 1);
    place->frozen = false;
    service.until([&service] { return service.sessions().health_numbers().quarantined == 0; });
}

BOOST_AUTO_TEST_CASE(sleeping_sessions_survive_a_restart_and_hold_no_place) {
    std::string token;
    {
        test::service service(host, store, config(1));
        token = service.open("a").token;
        service.exec("a", "echo before");
        service.clock().advance(60s);
        service.open("b");
    }
    test::service service(host, store, config(1));
    BOOST_TEST(service.state("a") == "hibernated");
    BOOST_TEST(service.state("b") == "running");
    BOOST_TEST(service.sessions().health_numbers().sessions == 1);
    BOOST_TEST(service.sessions().health_numbers().open_sessions == 2);
    BOOST_TEST((service.sessions().authorize(token, "a") == auth::scope::session));
    BOOST_TEST(service.events("a").events.at(0).target == "echo before");
    BOOST_TEST(service.get(service.sessions().close("b", false)).has_value());
    BOOST_TEST(service.exec("a", "echo after").output == "after\n");
    BOOST_TEST(service.events("a").events.at(0).target == "echo before");
    BOOST_TEST(service.events("a").events.at(1).target == "echo after");
}

BOOST_AUTO_TEST_CASE(a_sleeping_session_can_be_closed_and_purged) {
    test::service service(host, store, config(1));
    service.open("a");
    service.clock().advance(60s);
    service.open("b");
    BOOST_TEST(service.get(service.sessions().close("a", true)).has_value());
    BOOST_TEST(service.state("a") == "none");
    BOOST_TEST(!std::filesystem::exists(root.path() / "a"));
    BOOST_TEST(service.sessions().health_numbers().open_sessions == 1);
}

BOOST_AUTO_TEST_CASE(a_stop_of_a_run_in_a_sleeping_session_does_not_wake_it) {
    test::service service(host, store, config(1));
    service.open("a");
    service.clock().advance(60s);
    service.open("b");
    BOOST_TEST(service.get(service.sessions().stop_run("a", std::string(32, 'a'))).has_value());
    BOOST_TEST(service.state("a") == "hibernated");
}

BOOST_AUTO_TEST_CASE(what_is_kept_of_a_sandbox_is_found_again_by_its_id) {
    auto keeping = config(std::nullopt);
    keeping.persist_containers = true;
    keeping.workspace_root.reset();
    keeping.evict_idle_after.reset();
    {
        test::service service(host, store, keeping);
        service.open("a");
        const auto place = host->place_of("a");
        BOOST_TEST(service.get(service.sessions().close("a", false)).has_value());
        BOOST_TEST(!place->alive);
        BOOST_TEST(host->place_of("a") == place);
        auto attach = named("a");
        attach.attach = true; // N16.24
        BOOST_TEST(failure(service.get(service.sessions().open(attach))) == "opened");
        BOOST_TEST(place->built == 2);
        BOOST_TEST(place->alive);
        BOOST_TEST(service.get(service.sessions().close("a", false)).has_value());
    }
    test::service service(host, store, keeping); // and after a restart
    const auto place = host->place_of("a");
    BOOST_REQUIRE(place != nullptr);
    service.open("a");
    BOOST_TEST(place->built == 3);
    BOOST_TEST(service.get(service.sessions().close("a", false)).has_value());
    auto other = named("a");
    other.runtime = "go"; // another image: that layer fits it not
    BOOST_TEST(failure(service.get(service.sessions().open(other))) == "opened");
    BOOST_TEST(place->built == 3);
    BOOST_TEST(host->place_of("a")->built == 1);
    BOOST_TEST(host->places().size() == 1U);
    BOOST_TEST(service.get(service.sessions().close("a", true)).has_value());
    BOOST_TEST(host->places().empty());
    BOOST_TEST((*service.get(store->load())).kept.empty());
    BOOST_TEST((*service.get(store->load())).slots.empty());
}

BOOST_AUTO_TEST_CASE(a_kept_sandbox_that_was_removed_is_gone_for_run_and_healed_for_exec) { // N9.2, N16.1
    auto keeping = config(std::nullopt);
    keeping.persist_containers = true;
    keeping.workspace_root.reset();
    keeping.evict_idle_after.reset();
    test::service service(host, store, keeping);
    service.open("a");
    const auto place = host->place_of("a");
    place->alive = false; // stopped from outside: started again at the first run
    const session::run_command echo{std::string(32, 'a'), {"echo", "hi"}, {}, std::nullopt};
    const auto ran = service.get(service.sessions().run("a", echo, nullptr));
    BOOST_REQUIRE(ran.has_value());
    BOOST_TEST(place->built == 2);
    place->alive = false; // removed from outside
    place->keep = false;
    for (int i = 0; i < 2; ++i) {
        const auto gone = service.get(service.sessions().run("a", echo, nullptr));
        BOOST_REQUIRE(gone.has_error());
        BOOST_TEST((gone.error().code == errc::gone));
        BOOST_TEST(gone.error().message == "The sandbox of session a is gone, and its files with it");
        BOOST_TEST(host->builds == 2);
    }
    BOOST_TEST(service.exec("a", "echo new").output == "new\n");
    BOOST_TEST(service.get(service.sessions().run("a", echo, nullptr)).has_value());
}

BOOST_AUTO_TEST_CASE(a_sandbox_that_does_not_answer_at_start_is_asked_again) {
    const auto config_without_root = test::test_settings();
    {
        test::service service(host, store, config_without_root);
        service.open("a");
    }
    host->mute = true;
    test::service service(host, store, config_without_root);
    BOOST_TEST(service.state("a") == "dead");
    host->mute = false;
    service.until([&service] { return service.state("a") == "running"; });
    BOOST_TEST(host->builds == 1);
    BOOST_TEST(service.exec("a", "echo same").output == "same\n");
}

BOOST_AUTO_TEST_CASE(a_failed_open_leaves_no_directory) {
    test::service service(host, store, config(std::nullopt));
    host->fail_builds = true;
    BOOST_TEST(failure(service.get(service.sessions().open(named("a")))) ==
               "start_failed: The sandbox could not be started: the daemon is on strike");
    BOOST_TEST(!std::filesystem::exists(root.path() / "a"));
    std::filesystem::create_directories(root.path() / "b" / "workspace");
    std::ofstream(root.path() / "b" / "workspace" / "file") << "kept";
    BOOST_TEST(service.get(service.sessions().open(named("b"))).has_error());
    BOOST_TEST(std::filesystem::exists(root.path() / "b" / "workspace" / "file"));
}

BOOST_AUTO_TEST_SUITE_END()
