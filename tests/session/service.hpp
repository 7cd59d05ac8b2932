#pragma once

// A registry with everything below it, and a way to wait for its answers on the test's thread.

#include "session/fake_host.hpp"
#include "session/on_context.hpp"
#include "session/registry.hpp"

#include <filesystem>
#include <memory>
#include <string>

namespace sandboxd::test {

inline constexpr auth::token_key test_key{7};

inline settings test_settings() {
    settings config;
    config.token = "service-token";
    config.default_runtime = "python";
    for (const char* alias : {"go", "python"}) {
        runtime_entry entry;
        entry.alias = alias;
        entry.image = alias;
        config.runtimes.push_back(entry);
    }
    config.execute_timeout = 60; // of no stalled machine
    config.max_sessions = std::nullopt;
    return config;
}

inline session::runtime_source test_runtimes() {
    session::runtime_source runtimes;
    runtimes.aliases = {"go", "python"};
    runtimes.entry = [](const settings&, const std::string& alias) -> result<std::string> {
        if (alias != "go" && alias != "python") {
            return error{errc::invalid, "Unknown runtime '" + alias + "'. Allowed: go, python"};
        }
        return R"({"alias":")" + alias + R"("})";
    };
    runtimes.spec = [](const settings& policy, const std::string& alias,
                       const std::string&) -> result<sandbox_spec> {
        sandbox_spec spec;
        spec.image = alias;
        spec.limits.cpus = policy.cpus;
        return spec;
    };
    return runtimes;
}

/// Stands for the JSON of the service: "max_sessions=3;idle_timeout=none".
session::policy_text test_policy_text();

/// Looks often, and gives up on nothing that a stalled machine only delays.
inline session::patience long_patience() {
    session::patience waits;
    for (auto* limit : {&waits.stop, &waits.adopt, &waits.stop_run, &waits.exec_grace, &waits.run_grace}) {
        *limit = std::chrono::seconds(30);
    }
    waits.flush = std::chrono::milliseconds(5);
    waits.tick = std::chrono::milliseconds(2);
    waits.adopt_again = std::chrono::milliseconds(5);
    return waits;
}

/// For tests in which something never answers.
inline session::patience short_patience() {
    auto waits = long_patience();
    waits.stop = std::chrono::milliseconds(100);
    waits.exec_grace = std::chrono::milliseconds(200);
    waits.run_grace = std::chrono::milliseconds(200);
    return waits;
}

/// What the service stands on, for as many lives of it as a test has.
struct with_host {
    std::shared_ptr<fake_host> host = std::make_shared<fake_host>();
    std::shared_ptr<store::session_store> store = store::create_memory_store();
};

inline session::open_request named(const std::string& id) {
    session::open_request request;
    request.session_id = id;
    return request;
}

/// An answer that must be this error.
#define CHECK_ERROR(answer, expected_code, text)                                                             \
    BOOST_REQUIRE((answer).has_error());                                                                     \
    BOOST_TEST(std::string(name_of((answer).error().code)) == name_of(expected_code));                       \
    BOOST_TEST((answer).error().message == (text))

/// One life of the service; the host and the store go on after it.
class service : public on_context {
public:
    service(std::shared_ptr<fake_host> host, std::shared_ptr<store::session_store> store,
            settings config = test_settings(), session::patience waits = long_patience());
    ~service();
    service(const service&) = delete;
    service& operator=(const service&) = delete;

    session::registry& sessions() { return *registry_; }
    core::manual_clock& clock() { return *clock_; }
    fake_host& host() { return *host_; }
    core::worker_pool& workers() { return workers_; } ///< one thread

    session::opened open(const std::string& id);
    session::event_page events(const std::string& id, std::int64_t after = 0);
    /// "running", "hibernated", "dead" (running without a sandbox) or "none".
    std::string state(const std::string& id);
    /// Lets the reaper see that so much time has passed.
    void later(std::chrono::seconds time);
    session::exec_answer exec(const std::string& id, const std::string& command);
    void shut(session::shutdown_mode mode);

private:
    settings config_;
    std::shared_ptr<fake_host> host_;
    std::shared_ptr<store::session_store> store_;
    std::shared_ptr<core::manual_clock> clock_ = core::create_manual_clock(1'700'000'000.5);
    core::worker_pool workers_{"test", 1};
    auth::token_authority authority_{"service-token", test_key};
    std::unique_ptr<session::registry> registry_;
    bool shut_ = false;
};

/// A directory of its own, removed with what is in it.
class temporary_directory {
public:
    temporary_directory();
    ~temporary_directory();
    temporary_directory(const temporary_directory&) = delete;
    temporary_directory& operator=(const temporary_directory&) = delete;
    [[nodiscard]] const std::filesystem::path& path() const { return path_; }

private:
    std::filesystem::path path_;
};

} // namespace sandboxd::test
