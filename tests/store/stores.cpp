#include "core/random.hpp"
#include "store/session_store.hpp"
#include "support/run.hpp"
#include "support/scratch.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/test/unit_test.hpp>
#include <sqlite3.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace sandboxd;
using namespace std::chrono_literals;

namespace {

std::atomic<int> syncs = 0; ///< to the disk, of the whole program

} // namespace

// In place of the C library's, for SQLite too.
extern "C" int fdatasync(int fd) {
    ++syncs;
    return static_cast<int>(::syscall(SYS_fdatasync, fd));
}
extern "C" int fsync(int fd) {
    ++syncs;
    return static_cast<int>(::syscall(SYS_fsync, fd));
}

namespace {

store::nonce nonce_of(unsigned char fill) {
    store::nonce one{};
    one.fill(fill);
    return one;
}

store::session_record record_of(std::int64_t order, const std::string& id) {
    store::session_record one;
    one.order = order;
    one.id = id;
    one.runtime = "python";
    one.entry = R"({"image":"x\u0000"})";
    one.tenant = order % 2 == 0 ? std::optional<std::string>("acme") : std::nullopt;
    one.workspace = order % 2 == 0 ? std::optional<std::string>("/w/" + id + "/workspace") : std::nullopt;
    one.token_nonce = nonce_of(static_cast<unsigned char>(order));
    one.created_at = 1'700'000'000.123;
    one.last_activity = 1'700'000'001.5;
    one.slot = "slot-" + id;
    one.event_limit = 256;
    one.host_door = order % 3;
    return one;
}

store::event_record event_of(std::int64_t seq) {
    return {seq, 1'700'000'002.25, "exec", "tär\nget", seq % 2 == 0, "exit 0", 1.5};
}

std::string contents_of(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    std::ostringstream all;
    all << in.rdbuf();
    return all.str();
}

/// What both stores have to do alike; `again` plays a restart.
void behaves(const std::function<store::session_store&()>& current, const std::function<void()>& again) {
    boost::asio::io_context context;
    const auto commit = [&](std::vector<store::change> changes) {
        return test::get(context, current().commit(std::move(changes)));
    };
    const auto load = [&] { return *test::get(context, current().load()); };
    BOOST_REQUIRE(commit({store::put_slot{{"slot-b", "oci", "h\"1"}}, store::put_slot{{"slot-a", "oci", ""}},
                          store::put_slot{{"slot-c", "oci", "3"}}})
                      .has_value());
    BOOST_REQUIRE(
        commit({store::put_session{record_of(2, "b")}, store::put_session{record_of(1, "a")}}).has_value());
    for (std::int64_t seq = 1; seq <= 205; ++seq) {
        BOOST_REQUIRE(
            commit({store::add_event{1, event_of(seq)}, store::add_event{9, event_of(seq)}}).has_value());
    }
    again();
    auto all = load();
    BOOST_REQUIRE(all.sessions.size() == 2U);
    BOOST_TEST((all.sessions[0].session == record_of(1, "a")));
    BOOST_TEST((all.sessions[1].session == record_of(2, "b")));
    BOOST_REQUIRE(all.sessions[0].events.size() == 200U);
    BOOST_TEST((all.sessions[0].events.front() == event_of(6)));
    BOOST_TEST((all.sessions[0].events.back() == event_of(205)));
    BOOST_TEST(all.sessions[1].events.empty());
    BOOST_REQUIRE(all.slots.size() == 3U);
    BOOST_TEST(all.slots[1].handle == "h\"1");

    // An id is open once; a commit that fails changes nothing.
    const auto twice = commit({store::drop_slot{"slot-c"}, store::put_session{record_of(3, "a")}});
    BOOST_REQUIRE(twice.has_error());
    BOOST_TEST(std::string(name_of(twice.error().code)) == "exists");
    BOOST_TEST(load().slots.size() == 3U);

    // Closing and opening again in one commit.
    const store::tombstone stone{"a", nonce_of(1), 50.0, "/w/a/workspace"};
    BOOST_REQUIRE(
        commit({store::drop_session{1}, store::put_tombstone{stone}, store::put_session{record_of(3, "a")},
                store::touch{2, 77.5}, store::reserve_events{2, 512}, store::touch{1, 1.0},
                store::add_event{1, event_of(206)}, store::drop_slot{"slot-c"}, store::drop_slot{"none"}})
            .has_value());
    again();
    all = load();
    BOOST_REQUIRE(all.sessions.size() == 2U);
    auto changed = record_of(2, "b");
    changed.last_activity = 77.5;
    changed.event_limit = 512;
    BOOST_TEST((all.sessions[0].session == changed));
    BOOST_TEST((all.sessions[1].session == record_of(3, "a")));
    BOOST_TEST(all.sessions[1].events.empty());
    BOOST_TEST(all.slots.size() == 2U);
    BOOST_REQUIRE(all.tombstones.size() == 1U);
    BOOST_TEST((all.tombstones[0] == stone));

    // Asleep: its events are left in the store until somebody asks for them.
    BOOST_REQUIRE(commit({store::add_event{3, event_of(1)}, store::add_event{3, event_of(2)},
                          store::set_state{3, store::session_state::hibernated, "slot-b", 88.5}})
                      .has_value());
    again();
    all = load();
    BOOST_TEST((all.sessions[1].session.state == store::session_state::hibernated));
    BOOST_TEST((all.sessions[1].session.slot == "slot-b"));
    BOOST_TEST(all.sessions[1].session.last_activity == 88.5);
    BOOST_TEST(all.sessions[1].events.empty());
    const auto events = *test::get(context, current().events(3));
    BOOST_REQUIRE(events.size() == 2U);
    BOOST_TEST((events[1] == event_of(2)));
    BOOST_TEST(test::get(context, current().events(99))->empty());
    BOOST_REQUIRE(
        commit({store::set_state{3, store::session_state::running, std::nullopt, 89.0}}).has_value());
    BOOST_TEST(load().sessions[1].events.size() == 2U);

    // What closed sessions have left, and what PUT /policy has set.
    BOOST_REQUIRE(
        commit({store::put_kept{{"a", "slot-a", "img", 1.5}}, store::put_kept{{"b", "slot-b", "img", 2}},
                store::put_kept{{"a", "slot-a", "other", 3.5}}, store::put_policy{R"({"x":1})"}})
            .has_value());
    again();
    all = load();
    BOOST_REQUIRE(all.kept.size() == 2U);
    BOOST_TEST((all.kept[0] == store::kept_layer{"a", "slot-a", "other", 3.5}));
    BOOST_TEST((all.policy == R"({"x":1})"));
    BOOST_REQUIRE(
        commit({store::drop_kept{"a"}, store::drop_kept{"b"}, store::put_policy{std::nullopt}}).has_value());
    BOOST_TEST(load().kept.empty());
    BOOST_TEST(!load().policy.has_value());

    // A tombstone that still has something to purge is kept however old it is.
    BOOST_REQUIRE(commit({store::prune_tombstones{100.0}}).has_value());
    BOOST_TEST(load().tombstones.size() == 1U);
    BOOST_REQUIRE(commit({store::purge_done{nonce_of(1)}, store::prune_tombstones{50.0}}).has_value());
    BOOST_TEST(load().tombstones.size() == 1U);
    BOOST_REQUIRE(commit({store::prune_tombstones{100.0}}).has_value());
    BOOST_TEST(load().tombstones.empty());
    current().close();
    BOOST_TEST(commit({store::drop_slot{"slot-a"}}).has_error());
}

void check_refused(const std::string& path, const std::string& word) {
    const auto before = contents_of(path);
    const auto opened = store::open_sqlite_store(path);
    BOOST_REQUIRE(opened.has_error());
    BOOST_TEST(std::string(name_of(opened.error().code)) == "invalid");
    BOOST_TEST(opened.error().message.find(path) != std::string::npos, opened.error().message);
    BOOST_TEST(opened.error().message.find(word) != std::string::npos, opened.error().message);
    BOOST_TEST((contents_of(path) == before));
}

void sql(const std::string& path, const char* text) {
    sqlite3* db = nullptr;
    BOOST_REQUIRE(::sqlite3_open(path.c_str(), &db) == SQLITE_OK);
    BOOST_REQUIRE(::sqlite3_exec(db, text, nullptr, nullptr, nullptr) == SQLITE_OK);
    ::sqlite3_close(db);
}

} // namespace

BOOST_AUTO_TEST_CASE(the_memory_store_behaves) {
    const auto one = store::create_memory_store();
    behaves([&]() -> store::session_store& { return *one; }, [] {});
}

BOOST_AUTO_TEST_CASE(the_sqlite_store_behaves) {
    const test::scratch dir;
    const auto path = dir.file("state.db");
    std::unique_ptr<store::session_store> one = *store::open_sqlite_store(path);
    behaves([&]() -> store::session_store& { return *one; },
            [&] {
                one.reset();
                one = *store::open_sqlite_store(path);
            });
    struct stat found{};
    BOOST_REQUIRE(::stat(path.c_str(), &found) == 0);
    BOOST_TEST((found.st_mode & 0777U) == 0600U);
}

BOOST_AUTO_TEST_CASE(writers_at_the_same_time_are_each_answered) {
    const test::scratch dir;
    auto one = *store::open_sqlite_store(dir.file("state.db"));
    boost::asio::io_context context;
    int good = 0;
    int refused = 0;
    for (int i = 0; i < 500; ++i) {
        // Every tenth is refused: it costs the others of its group nothing.
        const auto id = i % 10 == 9 ? "taken" : "id" + std::to_string(i);
        boost::asio::co_spawn(
            context, one->commit({store::put_session{record_of(i + 1, id)}}),
            [&](const std::exception_ptr&, const result<void>& how) { ++(how ? good : refused); });
    }
    context.run_for(60s);
    BOOST_TEST(good == 451);
    BOOST_TEST(refused == 49);
    BOOST_TEST(test::get(context, one->load())->sessions.size() == 451U);
}

BOOST_AUTO_TEST_CASE(answered_commits_survive_a_kill) {
    const test::scratch dir;
    const auto path = dir.file("state.db");
    int answered[2];
    BOOST_REQUIRE(::pipe2(answered, O_CLOEXEC) == 0);
    const pid_t child = ::fork();
    if (child == 0) {
        auto one = *store::open_sqlite_store(path);
        for (std::int64_t i = 1;; ++i) {
            boost::asio::io_context context;
            boost::asio::co_spawn(context,
                                  one->commit({store::put_session{record_of(i, "id" + std::to_string(i))}}),
                                  [&](const std::exception_ptr&, const result<void>& how) {
                                      if (!how || ::write(answered[1], &i, sizeof i) != sizeof i) {
                                          ::_exit(1);
                                      }
                                  });
            context.run();
        }
    }
    ::close(answered[1]);
    std::int64_t last = 0;
    while (last < 50 && ::read(answered[0], &last, sizeof last) == sizeof last) {
    }
    BOOST_REQUIRE(::kill(child, SIGKILL) == 0);
    int status = 0;
    BOOST_REQUIRE(::waitpid(child, &status, 0) == child);
    BOOST_TEST(WIFSIGNALED(status));
    std::int64_t more = 0;
    while (::read(answered[0], &more, sizeof more) == sizeof more) {
        last = more;
    }
    ::close(answered[0]);
    auto one = *store::open_sqlite_store(path);
    boost::asio::io_context context;
    const auto all = test::get(context, one->load());
    BOOST_TEST(all->sessions.size() >= static_cast<std::size_t>(last));
    BOOST_TEST(all->sessions.size() <= static_cast<std::size_t>(last) + 1);
}

BOOST_AUTO_TEST_CASE(slots_alone_are_put_without_a_write_to_the_disk) {
    const test::scratch dir;
    boost::asio::io_context context;
    auto one = *store::open_sqlite_store(dir.file("state.db"));
    const auto takes = [&](std::vector<store::change> changes) {
        const int before = syncs;
        BOOST_TEST(test::get(context, one->commit(std::move(changes))).has_value());
        return syncs - before;
    };
    BOOST_TEST(takes({store::put_session{record_of(1, "a")}}) > 0);
    BOOST_TEST(takes({store::put_slot{{"b", "oci", ""}}, store::put_slot{{"c", "oci", ""}}}) == 0);
    BOOST_TEST(takes({store::put_slot{{"d", "oci", ""}}}) == 0);
    BOOST_TEST(takes({store::put_slot{{"e", "oci", ""}}, store::drop_slot{"b"}}) == 1);
    BOOST_TEST(takes({store::put_session{record_of(2, "b")}}) == 1);
    BOOST_TEST(takes({store::put_slot{{"f", "oci", ""}}}) == 0);
    BOOST_TEST(takes({store::touch{1, 1.0}}) == 1);
    BOOST_TEST(test::get(context, one->load())->slots.size() == 4U);
}

BOOST_AUTO_TEST_CASE(what_is_not_ours_is_refused_and_left_alone) {
    const test::scratch dir;
    std::ofstream(dir.file("text.db")) << std::string(5000, 'x');
    check_refused(dir.file("text.db"), "not a database");
    sql(dir.file("foreign.db"), "CREATE TABLE t (x); INSERT INTO t VALUES (1)");
    check_refused(dir.file("foreign.db"), "another program");
    {
        [[maybe_unused]] const auto made = store::open_sqlite_store(dir.file("newer.db"));
    }
    sql(dir.file("newer.db"), "PRAGMA user_version = 99; PRAGMA wal_checkpoint(TRUNCATE)");
    check_refused(dir.file("newer.db"), "another version");
}

BOOST_AUTO_TEST_CASE(a_damaged_database_is_refused_and_left_alone) {
    const test::scratch dir;
    const auto path = dir.file("state.db");
    {
        boost::asio::io_context context;
        auto one = *store::open_sqlite_store(path);
        for (std::int64_t i = 1; i <= 300; ++i) {
            BOOST_REQUIRE(test::get(
                context, one->commit({store::put_session{record_of(i, "id" + std::to_string(i))}})));
        }
    }
    auto bytes = contents_of(path);
    BOOST_REQUIRE(bytes.size() > 40'000U);
    for (std::size_t at = 8192; at < 40'000; ++at) {
        bytes[at] = static_cast<char>(at * 31);
    }
    std::ofstream(path, std::ios::binary) << bytes;
    check_refused(path, "damaged");
}
