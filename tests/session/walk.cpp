// A seeded walk through the life of many sessions: whatever is asked, in whatever order and at one time, the
// counts, the records, the host and what clients see agree afterwards.

#include "core/log.hpp"
#include "core/random.hpp"
#include "session/service.hpp"

#include <boost/test/unit_test.hpp>

#include <cstdlib>
#include <map>
#include <random>
#include <set>

using namespace sandboxd;
using namespace std::chrono_literals;

namespace {

constexpr std::int64_t resident_ceiling = 4;
constexpr std::int64_t open_ceiling = 7;
constexpr std::int64_t tenant_ceiling = 3;

/// 100 000 in the long run: SANDBOXD_TEST_WALK_STEPS says so.
int steps() {
    const char* asked = std::getenv("SANDBOXD_TEST_WALK_STEPS");
    return asked != nullptr ? std::atoi(asked) : 10'000;
}

/// SANDBOXD_TEST_WALK_SEED gives another walk.
unsigned seed() {
    const char* asked = std::getenv("SANDBOXD_TEST_WALK_SEED");
    return asked != nullptr ? static_cast<unsigned>(std::atoi(asked)) : 20'260'101;
}

class walk {
public:
    walk() {
        config_.native_files = false;
        config_.max_sessions = resident_ceiling;
        config_.max_open_sessions = open_ceiling;
        config_.max_sessions_per_tenant = tenant_ceiling;
        config_.evict_idle_after = 5;
        config_.idle_timeout = 60;
        config_.cleanup_interval = 20;
        config_.execute_timeout = 20;
        start();
    }

    void go(int count) {
        core::log::set_level("error");
        for (int done = 0; done < count;) {
            const int together = pick(3) + 1;
            for (int i = 0; i < together; ++i) {
                act();
            }
            done += together;
            try {
                settle();
                check();
                if (pick(400) == 0) {
                    service_.reset();
                    start();
                    check();
                }
            } catch (...) {
                tell(done);
                throw;
            }
        }
        core::log::set_level("info");
    }

    [[nodiscard]] const std::map<std::string, int>& seen() const { return seen_; }

private:
    using answers = std::vector<std::function<bool()>>;

    int pick(int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }
    std::string any_id() { return std::string(1, static_cast<char>('a' + pick(10))); }

    void start() {
        // Every other life has no workspace root: what is opened in it must never be put to sleep.
        config_.workspace_root = ++lives_ % 2 == 1 ? std::optional(root_.path().string()) : std::nullopt;
        service_ = std::make_unique<test::service>(host_, store_, config_);
    }

    template <class T>
    void wait_later(std::shared_ptr<std::optional<T>> answer, const char* what) {
        pending_.emplace_back([this, answer, what] {
            if (!answer->has_value()) {
                return false;
            }
            ++seen_[std::string(what) +
                    ((*answer)->has_error() ? " " + std::string(name_of((*answer)->error().code)) : "")];
            return true;
        });
    }

    void act() {
        auto& sessions = service_->sessions();
        const auto id = any_id();
        switch (pick(12)) {
        case 0:
        case 1:
        case 2: {
            session::open_request request;
            request.session_id = id;
            request.reuse = pick(2) == 0;
            request.attach = pick(8) == 0;
            if (pick(2) == 0) {
                request.tenant = pick(2) == 0 ? "acme" : "umbrella";
            }
            wait_later(service_->start(sessions.open(request)), "open");
            break;
        }
        case 3:
        case 4:
        case 5:
            wait_later(service_->start(sessions.exec(id, {"true", std::nullopt}, nullptr)), "exec");
            break;
        case 6: {
            session::run_command run{core::random_hex(16), {"true"}, {}, std::nullopt};
            wait_later(service_->start(sessions.run(id, std::move(run), nullptr)), "run");
            break;
        }
        case 7:
            wait_later(service_->start(sessions.close(id, pick(2) == 0)), "close");
            break;
        case 8:
            service_->clock().advance(std::chrono::seconds(pick(12)));
            break;
        case 9:
            service_->clock().step_wall((pick(2) == 0 ? 1 : -1) * 3600.0 * pick(6));
            break;
        case 10:
            if (const auto place = host_->place_of(id)) {
                place->alive = false;
            }
            break;
        default:
            host_->fail_builds = pick(6) == 0;
            break;
        }
    }

    void settle() {
        service_->until([this] {
            std::erase_if(pending_, [](const auto& done) { return done(); });
            return pending_.empty();
        });
        host_->fail_builds = false;
        if (pick(10) == 0) {
            service_->pass(8ms); // the reaper looks at the clock
        }
        // Sessions that are put to sleep or closed with nobody waiting.
        // What looks quiet once may be between two steps.
        int calm = 0;
        service_->until([this, &calm] {
            calm = quiet() ? calm + 1 : 0;
            return calm == 5;
        });
    }

    /// Nothing is on its way: what is resident and what runs on the host do not change any more.
    bool quiet() {
        const auto kept = *service_->get(store_->load());
        const auto listed = service_->get(service_->sessions().list(false)).sessions.size();
        return kept.sessions.size() == listed && kept.slots.size() == host_->places().size() &&
               service_->sessions().health_numbers().open_sessions == static_cast<std::int64_t>(listed);
    }

    /// Where the walk has come to an end, and what was there.
    void tell(int done) {
        std::string text = "seed " + std::to_string(seed()) + ", after step " + std::to_string(done) + ": " +
                           std::to_string(pending_.size()) + " answers awaited; on the host";
        for (const auto& id : host_->places()) {
            text += " " + id + (host_->place_of(id)->alive ? "" : " (dead)");
        }
        if (service_ != nullptr) {
            const auto kept = *service_->get(store_->load());
            text += "; slots " + std::to_string(kept.slots.size()) + "; records";
            for (const auto& one : kept.sessions) {
                text += " " + one.session.id + (one.session.slot ? " with a slot" : "");
            }
            text += "; listed";
            for (const auto& one : service_->get(service_->sessions().list(false)).sessions) {
                text += " " + one.id + (one.hibernated ? " asleep" : one.alive ? " alive" : " dead");
            }
        }
        BOOST_ERROR(text);
    }

    void check() {
        auto& sessions = service_->sessions();
        const auto listing = service_->get(sessions.list(false));
        const auto health = sessions.health_numbers();
        const auto kept = *service_->get(store_->load());
        std::map<std::string, store::session_record> records;
        for (const auto& one : kept.sessions) {
            records[one.session.id] = one.session;
        }
        std::int64_t resident = 0;
        std::map<std::string, std::int64_t> tenants;
        std::multiset<std::string> alive;
        for (const auto& one : listing.sessions) {
            resident += one.hibernated ? 0 : 1;
            ++seen_[one.hibernated ? "hibernated" : one.alive ? "running" : "dead"];
            if (one.alive) {
                alive.insert(one.id);
            }
            if (one.tenant) {
                ++tenants[*one.tenant];
            }
            BOOST_REQUIRE(records.contains(one.id));
            BOOST_REQUIRE((records[one.id].state == store::session_state::hibernated) == one.hibernated);
            BOOST_REQUIRE(!one.hibernated || records[one.id].workspace.has_value());
            BOOST_REQUIRE(records[one.id].slot.has_value() == !one.hibernated || !one.alive);
        }
        BOOST_REQUIRE(health.sessions == resident);
        BOOST_REQUIRE(resident <= resident_ceiling);
        BOOST_REQUIRE(health.open_sessions == static_cast<std::int64_t>(listing.sessions.size()));
        BOOST_REQUIRE(health.open_sessions <= open_ceiling);
        BOOST_REQUIRE(health.running_commands == 0);
        BOOST_REQUIRE(health.quarantined == 0);
        for (const auto& [tenant, count] : tenants) {
            BOOST_REQUIRE(count <= tenant_ceiling);
        }
        std::multiset<std::string> on_host;
        for (const auto& id : host_->places()) {
            if (host_->place_of(id)->alive) {
                on_host.insert(id);
            }
        }
        BOOST_REQUIRE(on_host == alive); // no sandbox without its session, none twice
    }

    test::temporary_directory root_;
    int lives_ = 0;
    std::mt19937 random_{seed()};
    std::shared_ptr<test::fake_host> host_ = std::make_shared<test::fake_host>();
    std::shared_ptr<store::session_store> store_ = store::create_memory_store();
    settings config_ = test::test_settings();
    std::unique_ptr<test::service> service_;
    answers pending_;
    std::map<std::string, int> seen_;
};

} // namespace

BOOST_AUTO_TEST_SUITE(walks)

BOOST_AUTO_TEST_CASE(a_seeded_walk_keeps_the_invariants) {
    walk one;
    one.go(steps());
    for (const char* what : {"open", "open exists", "open capacity", "open not_found", "exec",
                             "exec not_found", "run", "run gone", "close", "running", "dead", "hibernated"}) {
        BOOST_TEST(one.seen().contains(what), what << " was never seen");
    }
}

BOOST_AUTO_TEST_SUITE_END()
