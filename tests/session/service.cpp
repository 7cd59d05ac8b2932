#include "session/service.hpp"

#include "core/random.hpp"

#include <boost/test/unit_test.hpp>

namespace sandboxd::test {

service::service(std::shared_ptr<fake_host> host, std::shared_ptr<store::session_store> store,
                 settings config)
    : config_(std::move(config)), host_(std::move(host)), store_(std::move(store)) {
    registry_ = session::create_registry({context_, config_, *store_, *host_, *clock_, workers_, authority_,
                                          test_runtimes(), short_patience()});
    BOOST_REQUIRE(get(registry_->start()).has_value());
}

service::~service() {
    if (!shut_) {
        shut(session::shutdown_mode::keep);
    }
}

void service::shut(session::shutdown_mode mode) {
    shut_ = true;
    test::run(context_, registry_->shutdown(mode, std::chrono::seconds(5)));
}

void service::until(const std::function<bool()>& holds) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!holds() && std::chrono::steady_clock::now() < end) {
        context_.restart();
        context_.run_one_for(std::chrono::milliseconds(5));
    }
    BOOST_REQUIRE(holds());
}

void service::pass(std::chrono::milliseconds time) {
    context_.restart();
    context_.run_for(time);
}

session::opened service::open(const std::string& id) {
    session::open_request request;
    request.session_id = id;
    auto answer = get(registry_->open(request));
    BOOST_REQUIRE_MESSAGE(answer.has_value(), (answer ? std::string() : answer.error().message));
    return *answer;
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
