#include "session/overrides_file.hpp"
#include "session/service.hpp"

#include <boost/test/unit_test.hpp>

#include <fstream>

using namespace sandboxd;
using test::named;
using namespace std::chrono_literals;

namespace {
struct fixture : test::with_host {
    test::temporary_directory root;

    [[nodiscard]] settings with_file() const {
        auto made = test::test_settings();
        made.cleanup_interval = 10;
        made.policy_overrides = (root.path() / "overrides").string();
        return made;
    }
    void write(const std::string& text) const {
        std::ofstream(root.path() / "overrides", std::ios::trunc) << text;
    }
};

policy_change max_sessions(std::optional<std::int64_t> value) {
    policy_change change;
    change.max_sessions = {true, value};
    return change;
}

} // namespace

BOOST_FIXTURE_TEST_SUITE(policy, fixture)

BOOST_AUTO_TEST_CASE(a_change_counts_at_once_and_after_a_restart_until_it_is_forgotten) {
    auto config = test::test_settings();
    config.max_sessions = 1;
    {
        test::service service(host, store, config);
        service.open("a");
        BOOST_TEST(service.get(service.sessions().open(named("b"))).has_error());
        BOOST_TEST(service.get(service.sessions().change_policy(max_sessions(2))).has_value());
        BOOST_TEST(service.sessions().policy()->max_sessions.value() == 2);
        BOOST_TEST(service.sessions().health_numbers().limit.value() == 2);
        service.open("b");
        BOOST_TEST(service.get(service.sessions().change_policy(max_sessions(std::nullopt))).has_value());
        service.open("c");
    }
    config.max_sessions = 7; // PUT wins over what the service is started with
    {
        test::service service(host, store, config);
        BOOST_TEST(!service.sessions().policy()->max_sessions.has_value());
        BOOST_TEST(service.sessions().policy_overrides() == std::vector<std::string>{"max_sessions"},
                   boost::test_tools::per_element());
        BOOST_TEST(service.get(service.sessions().forget_policy()).has_value());
        BOOST_TEST(service.sessions().policy()->max_sessions.value() == 7);
        BOOST_TEST(service.sessions().policy_overrides().empty());
    }
    test::service service(host, store, config);
    BOOST_TEST(service.sessions().policy()->max_sessions.value() == 7);
}

BOOST_AUTO_TEST_CASE(a_change_is_applied_whole_or_not_at_all) {
    test::service service(host, store);
    auto& sessions = service.sessions();
    const auto refused = [&](const policy_change& change) {
        const auto answer = service.get(sessions.change_policy(change));
        return answer ? std::string("done") : answer.error().message;
    };
    auto change = max_sessions(5);
    change.runtimes["cobol"].cpus = {true, 1.0};
    BOOST_TEST(refused(change) == "Unknown runtime 'cobol'. Allowed: go, python");
    change = max_sessions(5);
    change.default_runtime = {true, "cobol"};
    BOOST_TEST(refused(change) == "Unknown runtime 'cobol'. Allowed: go, python");
    change = max_sessions(5);
    change.max_open_sessions = {true, 4};
    BOOST_TEST(refused(change).starts_with("max_open_sessions (4) is below max_sessions (5)"));
    change = max_sessions(5);
    change.evict_idle_after = {true, 4};
    BOOST_TEST(refused(change).starts_with("evict_idle_after needs workspace_root"));
    change = max_sessions(5);
    change.mem_limit = {true, "lots"};
    BOOST_TEST(refused(change).starts_with("mem_limit='lots'"));
    BOOST_TEST(!sessions.policy()->max_sessions.has_value());
    BOOST_TEST(sessions.policy_overrides().empty());
    BOOST_TEST(!(*service.get(store->load())).policy.has_value());
}

BOOST_AUTO_TEST_CASE(a_runtime_and_the_default_can_be_changed) {
    test::service service(host, store);
    policy_change change;
    change.default_runtime = {true, "go"};
    change.cpus = {true, 0.5};
    change.runtimes["go"].pids_limit = {true, 7};
    BOOST_TEST(service.get(service.sessions().change_policy(change)).has_value());
    BOOST_TEST(service.open("a").session.runtime == "go");
    BOOST_TEST(host->last_cpus.value() == 0.5);
    BOOST_TEST(service.sessions().policy()->runtimes.at(0).pids_limit.value() == 7);
    BOOST_TEST(service.sessions().policy_overrides() ==
                   (std::vector<std::string>{"default_runtime", "cpus", "runtimes.go.pids_limit"}),
               boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(the_overrides_file_is_read_before_the_first_request_and_again_when_it_changes) {
    write("max_sessions=3");
    test::service service(host, store, with_file());
    BOOST_TEST(service.sessions().policy()->max_sessions.value() == 3);
    BOOST_TEST(service.sessions().policy_overrides().empty()); // those are PUT's
    write("max_sessions=44;idle_timeout=77");
    service.later(11s);
    service.until([&service] { return service.sessions().policy()->max_sessions == 44; });
    BOOST_TEST(service.sessions().policy()->idle_timeout == 77);
    for (const char* bad : {"nonsense=1", "max_sessions=-1", ""}) {
        write(bad);
        service.later(11s);
        BOOST_TEST(service.sessions().policy()->max_sessions.value() == 44);
    }
    std::filesystem::remove(root.path() / "overrides");
    service.later(11s);
    BOOST_TEST(service.sessions().policy()->max_sessions.value() == 44);
    // PUT wins, and what the file says of other fields goes on.
    BOOST_TEST(service.get(service.sessions().change_policy(max_sessions(5))).has_value());
    write("max_sessions=6;idle_timeout=66");
    service.later(11s);
    service.until([&service] { return service.sessions().policy()->idle_timeout == 66; });
    BOOST_TEST(service.sessions().policy()->max_sessions.value() == 5);
    BOOST_TEST(service.get(service.sessions().forget_policy()).has_value());
    BOOST_TEST(service.sessions().policy()->max_sessions.value() == 6);
}

BOOST_AUTO_TEST_CASE(what_was_put_and_does_not_fit_any_more_does_not_keep_the_service_from_starting) {
    auto config = test::test_settings();
    {
        test::service service(host, store, config);
        BOOST_TEST(service.get(service.sessions().change_policy(max_sessions(9))).has_value());
    }
    config.max_open_sessions = 5;
    config.max_sessions = 5;
    test::service service(host, store, config);
    BOOST_TEST(service.sessions().policy()->max_sessions.value() == 5);
    BOOST_TEST(service.get(service.sessions().forget_policy()).has_value());
    BOOST_TEST(service.sessions().policy()->max_sessions.value() == 5);
}

BOOST_AUTO_TEST_CASE(a_lower_ceiling_is_reached_by_and_by) {
    auto config = test::test_settings();
    config.workspace_root = root.path().string();
    config.evict_idle_after = 0;
    test::service service(host, store, config);
    for (const char* id : {"a", "b", "c"}) {
        service.open(id);
        service.clock().advance(1s);
    }
    BOOST_TEST(service.get(service.sessions().change_policy(max_sessions(2))).has_value());
    BOOST_TEST(service.sessions().health_numbers().sessions == 3); // nobody is thrown out
    service.open("d");
    BOOST_TEST(service.sessions().health_numbers().sessions == 2);
    BOOST_TEST(service.state("a") == "hibernated");
    BOOST_TEST(service.state("b") == "hibernated");
    BOOST_TEST(service.get(service.sessions().change_policy(max_sessions(0))).has_value());
    BOOST_TEST(service.get(service.sessions().open(named("e"))).has_error());
    BOOST_TEST(service.state("c") == "running");
}

BOOST_AUTO_TEST_CASE(a_file_that_is_none_is_said_once) {
    namespace blocking = session::blocking;
    const auto path = root.path().string();
    BOOST_TEST(!blocking::read_overrides(path + "/none", "").has_value());
    const auto directory = blocking::read_overrides(path, "");
    BOOST_REQUIRE(directory.has_value());
    BOOST_TEST(directory->text.error().message == "it is not a file");
    BOOST_TEST(!blocking::read_overrides(path, directory->state).has_value());
    write("x");
    const auto file = blocking::read_overrides(path + "/overrides", "");
    BOOST_REQUIRE(file.has_value());
    BOOST_TEST(*file->text == "x");
    std::ofstream(root.path() / "large") << std::string(1024 * 1024 + 1, 'x');
    BOOST_TEST(blocking::read_overrides(path + "/large", "")->text.has_error());
}

BOOST_AUTO_TEST_SUITE_END()
