// Making way, falling asleep, waking, and what is kept in a slot.

#include "session/service.hpp"

#include <boost/test/unit_test.hpp>

#include <fstream>

using namespace sandboxd;
using test::named;
using namespace std::chrono_literals;

namespace {

struct fixture : test::with_host {
    test::temporary_directory root;

    [[nodiscard]] settings config(std::optional<std::int64_t> max_sessions) const {
        auto made = test::test_settings();
        made.workspace_root = root.path().string();
        made.max_sessions = max_sessions;
        made.evict_idle_after = 60;
        return made;
    }
};

session::open_request reusing(const std::string& id) {
    auto request = named(id);
    request.reuse = true;
    return request;
}

std::string failure(const result<session::opened>& answer) {
    return answer ? "opened" : std::string(name_of(answer.error().code)) + ": " + answer.error().message;
}

std::size_t hibernated_records(test::service& service, store::session_store& store) {
    const auto all = *service.get(store.load());
    return static_cast<std::size_t>(std::ranges::count_if(
        all.sessions, [](const auto& one) { return one.session.state == store::session_state::hibernated; }));
}

} // namespace

BOOST_FIXTURE_TEST_SUITE(sleeping, fixture)

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

BOOST_AUTO_TEST_CASE(a_session_with_a_command_in_flight_never_makes_way) {
    test::service service(host, store, config(1));
    service.open("a");
    const auto command = service.start(service.sessions().exec("a", {"sleep 200", std::nullopt}, nullptr));
    service.until([this] { return host->commands == 1; });
    service.clock().advance(60s);
    BOOST_TEST(failure(service.get(service.sessions().open(named("b")))) ==
               "capacity: Session limit of 1 reached: close one first");
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
    test::service service(host, store, config(1));
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
