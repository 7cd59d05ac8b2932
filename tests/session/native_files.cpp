// The host door's place among sessions: closes, purges, workers that are busy.

#include "session/service.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <future>

using namespace sandboxd;
using namespace std::chrono_literals;
using session::native_call;
using session::native_op;

namespace {

struct fixture : test::with_host {
    fixture() { config.workspace_root = root.path().string(); }

    [[nodiscard]] std::filesystem::path workspace() const { return root.path() / "a" / "workspace"; }

    test::temporary_directory root;
    settings config = test::test_settings();
};

/// The service's only worker is busy until this is told to let go.
class busy_worker {
public:
    explicit busy_worker(test::service& service) : busy_worker(service, when_free()) { is_busy(); }

    struct when_free {};
    /// Behind what waits for it now.
    busy_worker(test::service& service, when_free) : service_(service) {
        auto wait = [over = over_.get_future().share(), began = began_] {
            began->set_value();
            over.wait();
            return true;
        };
        started_ = began_->get_future();
        done_ = service.start(service.workers().run(std::move(wait)));
    }
    void is_busy() {
        service_.until([this] { return started_.wait_for(0s) == std::future_status::ready; });
    }
    void let_go() { over_.set_value(); }

private:
    test::service& service_;
    std::promise<void> over_;
    std::shared_ptr<std::promise<void>> began_ = std::make_shared<std::promise<void>>();
    std::future<void> started_;
    std::shared_ptr<std::optional<bool>> done_;
};

native_call writing(const std::string& path) {
    return {.op = native_op::write, .path = path, .content = "new"};
}

void check_closed(const result<session::native_outcome>& answer) {
    CHECK_ERROR(answer, errc::gone, "Session a was closed");
}

} // namespace

BOOST_FIXTURE_TEST_SUITE(native_files_of_sessions, fixture)

BOOST_AUTO_TEST_CASE(a_write_reaches_the_workspace) {
    test::service service(host, store, config);
    service.open("a");
    BOOST_TEST((service.sessions().host_files().door_of("a").value() == session::host_door::writes));
    BOOST_TEST(service.get(service.sessions().host_files().native("a", writing("/workspace/f")))
                   .value()
                   .has_value());
    std::ifstream file(workspace() / "f");
    BOOST_TEST(std::string(std::istreambuf_iterator<char>(file), {}) == "new");
}

BOOST_AUTO_TEST_CASE(what_waits_at_a_close_is_told_so_and_does_not_happen) {
    test::service service(host, store, config);
    service.open("a");
    busy_worker busy(service);
    auto& files = service.sessions().host_files();
    const auto queued = service.start(files.native("a", writing("/workspace/f")));
    const auto second = service.start(files.native("a", writing("/workspace/f")));
    service.pass(5ms);
    BOOST_TEST(service.get(service.sessions().close("a", false)).has_value());
    check_closed(service.ready(queued)); // the worker is busy still
    check_closed(service.ready(second));
    busy.let_go();
    BOOST_TEST(service.get(service.workers().run([] { return true; }))); // behind whatever was queued
    BOOST_TEST(std::filesystem::is_empty(workspace()));
}

BOOST_AUTO_TEST_CASE(a_write_that_waits_at_a_purge_brings_nothing_back) {
    test::service service(host, store, config);
    service.open("a");
    busy_worker busy(service);
    const auto queued = service.start(service.sessions().host_files().native("a", writing("/workspace/f")));
    service.pass(5ms);
    const auto closed = service.start(service.sessions().close("a", true));
    check_closed(service.ready(queued));
    busy.let_go();
    BOOST_TEST(service.ready(closed).has_value());
    BOOST_TEST(service.get(service.workers().run([] { return true; })));
    BOOST_TEST(std::filesystem::is_empty(root.path()));
}

BOOST_AUTO_TEST_CASE(with_every_worker_busy_commands_and_questions_are_answered) { // issue 6, max_workers
    test::service service(host, store, config);
    service.open("a");
    busy_worker busy(service);
    BOOST_TEST(service.exec("a", "echo hello").output == "hello\n");
    session::run_command command;
    command.run_id = std::string(32, 'a');
    command.argv = {"exit", "3"};
    BOOST_TEST(service.get(service.sessions().run("a", command, nullptr)).value().end.exit_code.value() == 3);
    BOOST_TEST(service.sessions().health_numbers().sessions == 1);
    BOOST_TEST(service.get(service.sessions().list(true)).sessions.size() == 1U);
    BOOST_TEST(service.events("a").events.size() == 2U);
    const auto waits = service.start(service.sessions().host_files().native("a", writing("/workspace/f")));
    service.pass(20ms);
    BOOST_TEST(!waits->has_value());
    busy.let_go();
    BOOST_TEST(service.ready(waits).value().has_value());
}

BOOST_AUTO_TEST_CASE(a_session_with_much_to_do_leaves_workers_to_the_others) {
    test::service service(host, store, config);
    service.open("a");
    service.open("b");
    auto& files = service.sessions().host_files();
    busy_worker busy(service);
    std::vector<std::shared_ptr<std::optional<result<session::native_outcome>>>> many;
    for (int i = 0; i < 10; ++i) {
        many.push_back(service.start(files.native("a", writing("/workspace/" + std::to_string(i)))));
    }
    service.pass(5ms);
    const auto other = service.start(files.native("b", writing("/workspace/f")));
    service.pass(5ms);
    busy_worker again(service, busy_worker::when_free());
    busy.let_go();
    again.is_busy();
    BOOST_TEST(service.ready(other).value().has_value()); // before nine of the other's ten
    const auto done = [&many] {
        return std::ranges::count_if(many, [](const auto& one) { return one->has_value(); });
    };
    service.until([&done] { return done() == 1; });
    BOOST_TEST(std::distance(std::filesystem::directory_iterator(workspace()), {}) == 1);
    again.let_go();
    for (const auto& one : many) {
        BOOST_TEST(service.ready(one).value().has_value());
    }
}

BOOST_AUTO_TEST_CASE(a_close_reaches_those_that_wait_for_their_share_of_workers) {
    test::service service(host, store, config);
    service.open("a");
    busy_worker busy(service);
    auto& files = service.sessions().host_files();
    std::vector<std::shared_ptr<std::optional<result<session::native_outcome>>>> many;
    for (int i = 0; i < 5; ++i) {
        many.push_back(service.start(files.native("a", writing("/workspace/" + std::to_string(i)))));
    }
    service.pass(5ms);
    BOOST_TEST(service.get(service.sessions().close("a", false)).has_value());
    for (const auto& one : many) {
        check_closed(service.ready(one)); // the worker is busy still
    }
    busy.let_go();
    BOOST_TEST(service.get(service.workers().run([] { return true; })));
    BOOST_TEST(std::filesystem::is_empty(workspace()));
}

BOOST_AUTO_TEST_SUITE_END()
