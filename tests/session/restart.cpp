// The service ends in every way it can and starts again on the same records and the same host.

#include "session/service.hpp"

#include <boost/test/unit_test.hpp>

#include <random>

using namespace sandboxd;
using test::named;
using namespace std::chrono_literals;

namespace {

/// A store that dies at a given commit, before or after it takes effect: nobody hears of it, and from then on
/// nothing is written, as if the service had been killed there. release() lets the dead service's coroutines
/// end.
class mortal_store final : public store::session_store {
public:
    mortal_store(std::shared_ptr<store::session_store> below, int dies_at, bool after)
        : below_(std::move(below)), left_(dies_at), after_(after) {}

    task<result<store::contents>> load() override { return below_->load(); }
    task<result<std::vector<store::event_record>>> events(std::int64_t order) override {
        return below_->events(order);
    }

    task<result<void>> commit(std::vector<store::change> changes) override {
        if (!dead_ && left_-- == 0) {
            if (after_) {
                [[maybe_unused]] const auto done = co_await below_->commit(std::move(changes));
            }
            dead_ = true;
        }
        if (dead_) {
            while (!released_) {
                [[maybe_unused]] const bool slept = co_await core::sleep_for(1ms);
            }
            co_return error{errc::unavailable, "dead"};
        }
        co_return co_await below_->commit(std::move(changes));
    }

    void close() override {}
    [[nodiscard]] bool dead() const { return dead_; }
    void release() { released_ = true; }

private:
    std::shared_ptr<store::session_store> below_;
    int left_;
    bool after_;
    std::atomic<bool> dead_{false};
    std::atomic<bool> released_{false};
};

/// No slot without a session, no session without its slot, no sandbox without either.
void check_records(test::service& service, store::session_store& store, test::fake_host& host) {
    const auto kept = test::get(service.context(), store.load());
    BOOST_REQUIRE(kept.has_value());
    std::set<std::string> slots;
    for (const auto& each : kept->slots) {
        slots.insert(each.slot);
    }
    std::set<std::string> used;
    std::vector<std::string> listed;
    for (const auto& each : kept->sessions) {
        listed.push_back(each.session.id);
        if (each.session.slot) {
            BOOST_TEST(slots.contains(*each.session.slot));
            used.insert(*each.session.slot);
        }
    }
    BOOST_TEST(slots == used, boost::test_tools::per_element());
    const auto places = host.places();
    std::ranges::sort(listed);
    BOOST_TEST(places == listed, boost::test_tools::per_element());
}

} // namespace

BOOST_FIXTURE_TEST_SUITE(restart, test::with_host)

BOOST_AUTO_TEST_CASE(sessions_tokens_events_and_running_commands_survive) {
    std::string token;
    std::string closed;
    {
        test::service service(host, store);
        token = service.open("a").token;
        closed = service.open("b").token;
        service.open("c");
        service.exec("a", "exit 3");
        service.clock().advance(7s);
        service.exec("a", "true");
        BOOST_TEST(service.get(service.sessions().close("b", false)).has_value());
    }
    host->place_of("c")->alive = false;
    host->add_stray("stray");
    test::service service(host, store);
    auto& sessions = service.sessions();
    BOOST_TEST((sessions.authorize(token, "a") == auth::scope::session));
    BOOST_TEST((sessions.authorize(closed, "b") == auth::scope::tombstone));
    const auto list = service.get(sessions.list(false));
    BOOST_REQUIRE(list.sessions.size() == 2U);
    BOOST_TEST(list.sessions[0].id == "a");
    BOOST_TEST(list.sessions[0].alive);
    BOOST_TEST(list.sessions[0].last_activity == 1'700'000'007.5);
    BOOST_TEST(list.sessions[1].id == "c");
    BOOST_TEST(!list.sessions[1].alive);
    const auto page = service.events("a");
    BOOST_REQUIRE(page.events.size() == 2U);
    BOOST_TEST(page.events[0].detail == "exit 3");
    BOOST_TEST(page.latest_seq == 2); // a clean end wastes no numbers
    BOOST_TEST(host->place_of("stray") == nullptr);
    BOOST_TEST(service.exec("a", "echo still here").output == "still here\n");
    BOOST_TEST(service.exec("c", "echo healed").output == "healed\n");
    BOOST_TEST(service.events("a", 2).events.at(0).seq == 3);
    BOOST_TEST(service.get(sessions.open(named("a"))).error().message == "Session exists: a");
    BOOST_TEST(sessions.health_numbers().sessions == 2);
    check_records(service, *store, *host);
}

BOOST_AUTO_TEST_CASE(a_purge_that_was_cut_off_is_finished) {
    const test::temporary_directory root;
    auto config = test::test_settings();
    config.workspace_root = root.path().string();
    {
        test::service service(host, store, config);
        service.open("a");
    }
    {
        // commits: 0 is the pruning at start, 1 the record of the close, then the service dies
        auto mortal = std::make_shared<mortal_store>(store, 1, true);
        test::service service(host, mortal, config);
        const auto never = service.start(service.sessions().close("a", true));
        service.until([&] { return mortal->dead(); });
        BOOST_TEST(!never->has_value());
        mortal->release();
    }
    // Releasing the dead one let it go on; put back what a real death would have left.
    std::filesystem::create_directories(root.path() / "a" / "workspace");
    test::service service(host, store, config);
    BOOST_TEST(!std::filesystem::exists(root.path() / "a"));
    BOOST_TEST(service.get(service.sessions().list(false)).sessions.empty());
    check_records(service, *store, *host);
}

BOOST_AUTO_TEST_CASE(event_numbers_do_not_come_twice_after_a_crash) {
    std::int64_t seen = 0;
    for (int life = 0; life < 3; ++life) {
        auto mortal = std::make_shared<mortal_store>(store, 3 + 3 * life, false);
        test::service service(host, mortal);
        if (life == 0) {
            service.open("a");
        }
        std::int64_t first = 0;
        for (int i = 0; i < 400 || (!mortal->dead() && i < 100'000); ++i) {
            service.exec("a", "true");
            const auto page = service.get(service.sessions().events("a", seen));
            if (first == 0 && !page->events.empty()) {
                first = page->events.front().seq;
                BOOST_TEST(first > seen);
            }
        }
        seen = std::max(seen, service.events("a", 0).latest_seq);
        service.until([&] { return mortal->dead(); });
        mortal->release();
    }
}

// Every commit of a busy life, before and after it takes effect.
BOOST_AUTO_TEST_CASE(whatever_a_crash_cuts_off_nothing_is_lost_and_nothing_left_over) {
    int crashes = 0;
    for (int at = 1; at < 40; ++at) {
        for (const bool after : {false, true}) {
            auto own_host = std::make_shared<test::fake_host>();
            auto own_store = store::create_memory_store();
            auto mortal = std::make_shared<mortal_store>(own_store, at, after);
            std::map<std::string, std::string> answered; // id to token, of sessions that must be there
            std::set<std::string> maybe;                 // a close was asked for and not answered
            bool ended = false;
            std::vector<std::string> found_after;
            {
                test::service service(own_host, mortal);
                const auto step = [&](auto work, auto then) {
                    if (mortal->dead()) {
                        return;
                    }
                    auto answer = service.start(std::move(work));
                    service.until([&] { return answer->has_value() || mortal->dead(); });
                    if (answer->has_value()) {
                        then(**answer);
                    }
                };
                for (const char* id : {"a", "b", "c", "d"}) {
                    step(service.sessions().open(named(id)),
                         [&](const result<session::opened>& opened) { answered[id] = opened->token; });
                }
                if (!mortal->dead()) {
                    own_host->place_of("b")->alive = false;
                }
                step(service.sessions().exec("b", {"true", std::nullopt}, nullptr), [](const auto&) {});
                for (const char* id : {"a", "c"}) {
                    if (!mortal->dead()) {
                        maybe.insert(id);
                    }
                    step(service.sessions().close(id, false), [&](const result<void>& closed) {
                        if (closed) {
                            answered.erase(id);
                            maybe.erase(id);
                        }
                    });
                }
                step(service.sessions().open(named("a")),
                     [&](const result<session::opened>& opened) { answered["a"] = opened->token; });
                ended = !mortal->dead();
                // The next life begins on what is there now, before the dead one's coroutines are let go.
                if (!ended) {
                    ++crashes;
                    test::service next(own_host, own_store);
                    for (const auto& [id, token] : answered) {
                        const auto scope = next.sessions().authorize(token, id);
                        const bool there = scope == auth::scope::session;
                        BOOST_TEST((there || (maybe.contains(id) && scope == auth::scope::tombstone)),
                                   id << " at " << at << (after ? " after" : " before"));
                        if (there) {
                            BOOST_TEST(next.exec(id, "echo x").output == "x\n");
                        }
                    }
                    check_records(next, *own_store, *own_host);
                    for (const auto& one : next.get(next.sessions().list(false)).sessions) {
                        BOOST_TEST(next.get(next.sessions().close(one.id, false)).has_value());
                    }
                    check_records(next, *own_store, *own_host);
                }
                mortal->release();
            }
        }
    }
    BOOST_TEST(crashes >= 30);
}

BOOST_AUTO_TEST_CASE(a_random_walk_keeps_the_books) {
    std::mt19937 random(20'240'817);
    const auto pick = [&random](int below) {
        return static_cast<int>(random() % static_cast<unsigned>(below));
    };
    for (int life = 0; life < 12; ++life) {
        auto config = test::test_settings();
        config.max_sessions = 6;
        config.max_running_commands = 3;
        test::service service(host, store, config);
        auto& sessions = service.sessions();
        std::vector<std::shared_ptr<std::optional<result<session::opened>>>> opens;
        std::vector<std::shared_ptr<std::optional<result<session::exec_answer>>>> commands;
        std::vector<std::shared_ptr<std::optional<result<void>>>> closes;
        for (int i = 0; i < 150; ++i) {
            const auto id = "s" + std::to_string(pick(9));
            switch (pick(7)) {
            case 0:
            case 1: {
                auto request = named(id);
                request.reuse = pick(2) == 0;
                opens.push_back(service.start(sessions.open(request)));
                break;
            }
            case 2:
            case 3:
                commands.push_back(service.start(
                    sessions.exec(id, {pick(2) == 0 ? "sleep 3" : "exit 1", std::nullopt}, nullptr)));
                break;
            case 4:
                closes.push_back(service.start(sessions.close(id, pick(2) == 0)));
                break;
            case 5:
                if (const auto place = host->place_of(id)) {
                    place->alive = false;
                }
                break;
            default:
                host->fail_builds = pick(4) == 0;
                service.pass(std::chrono::milliseconds(pick(3)));
                break;
            }
            BOOST_TEST(sessions.health_numbers().sessions <= 6);
        }
        host->fail_builds = false;
        for (const auto& each : opens) {
            [[maybe_unused]] const auto answer = service.ready(each);
        }
        for (const auto& each : commands) {
            [[maybe_unused]] const auto answer = service.ready(each);
        }
        for (const auto& each : closes) {
            [[maybe_unused]] const auto answer = service.ready(each);
        }
        const auto list = service.get(sessions.list(false));
        BOOST_TEST(sessions.health_numbers().sessions == static_cast<std::int64_t>(list.sessions.size()));
        BOOST_TEST(sessions.health_numbers().running_commands == 0);
        BOOST_TEST(host->most_running <= 3);
        for (const auto& one : list.sessions) {
            BOOST_TEST(service.exec(one.id, "echo " + one.id).output == one.id + "\n");
        }
        check_records(service, *store, *host);
    }
}

BOOST_AUTO_TEST_SUITE_END()
