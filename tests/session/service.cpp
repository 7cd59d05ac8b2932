#include "session/service.hpp"

#include "core/random.hpp"

#include <boost/test/unit_test.hpp>

#include <sstream>

namespace sandboxd::test {

namespace {
/// The fields that the tests set.
template <class Change, class F>
bool for_each_number(Change& change, F&& visit) {
    return visit("max_sessions", change.max_sessions) &&
           visit("max_open_sessions", change.max_open_sessions) &&
           visit("max_sessions_per_tenant", change.max_sessions_per_tenant) &&
           visit("evict_idle_after", change.evict_idle_after) && visit("idle_timeout", change.idle_timeout);
}
} // namespace

session::policy_text test_policy_text() {
    session::policy_text text;
    text.print = [](const policy_change& change) {
        std::string out;
        for_each_number(change, [&out](const char* name, const change_to<std::int64_t>& field) {
            if (field.given) {
                out += std::string(name) + "=" + (field.value ? std::to_string(*field.value) : "none") + ";";
            }
            return true;
        });
        return out;
    };
    text.parse = [](const std::string& from) -> result<policy_change> {
        policy_change change;
        std::istringstream lines(from);
        for (std::string one; std::getline(lines, one, ';');) {
            const auto equals = one.find('=');
            const bool unknown =
                for_each_number(change, [&](const char* name, change_to<std::int64_t>& field) {
                    if (one.substr(0, equals) != name) {
                        return true;
                    }
                    field.given = true;
                    if (one.substr(equals + 1) != "none") {
                        field.value = std::stoll(one.substr(equals + 1));
                    }
                    return false;
                });
            if (unknown) {
                return error{errc::invalid, "unknown field " + one};
            }
        }
        return change;
    };
    return text;
}

service::service(std::shared_ptr<fake_host> host, std::shared_ptr<store::session_store> store,
                 settings config, session::patience waits)
    : config_(std::move(config)), host_(std::move(host)), store_(std::move(store)) {
    registry_ = session::create_registry({context(), config_, *store_, *host_, *clock_, workers_, authority_,
                                          test_runtimes(), test_policy_text(), waits});
    BOOST_REQUIRE(get(registry_->start()).has_value());
}

service::~service() {
    if (!shut_) {
        shut(session::shutdown_mode::keep);
    }
}

void service::shut(session::shutdown_mode mode) {
    shut_ = true;
    test::run(context(), registry_->shutdown(mode, std::chrono::seconds(5)));
}

session::opened service::open(const std::string& id) {
    session::open_request request;
    request.session_id = id;
    auto answer = get(registry_->open(request));
    BOOST_REQUIRE_MESSAGE(answer.has_value(), (answer ? std::string() : answer.error().message));
    return *answer;
}

session::event_page service::events(const std::string& id, std::int64_t after) {
    auto page = get(registry_->events(id, after));
    BOOST_REQUIRE_MESSAGE(page.has_value(), (page ? std::string() : page.error().message));
    return *page;
}

std::string service::state(const std::string& id) {
    const auto found = get(registry_->inspect(id, false));
    if (!found) {
        return "none";
    }
    return found->hibernated ? "hibernated" : found->alive ? "running" : "dead";
}

void service::later(std::chrono::seconds time) {
    clock_->advance(time);
    // The reaper has the worker do things, one after the other.
    for (int i = 0; i < 4; ++i) {
        pass(std::chrono::milliseconds(5));
        get(workers_.run([] { return true; }));
    }
    pass(std::chrono::milliseconds(1));
}

session::exec_answer service::exec(const std::string& id, const std::string& command) {
    auto answer = get(registry_->exec(id, {command, std::nullopt}, nullptr));
    BOOST_REQUIRE_MESSAGE(answer.has_value(), (answer ? std::string() : answer.error().message));
    return *answer;
}

temporary_directory::temporary_directory()
    : path_(std::filesystem::temp_directory_path() / ("sandboxd-test-" + core::random_hex(8))) {
    std::filesystem::create_directory(path_);
}

temporary_directory::~temporary_directory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

} // namespace sandboxd::test
