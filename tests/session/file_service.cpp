#include "session/file_service.hpp"

#include <boost/test/unit_test.hpp>

namespace sandboxd::test {

file_service::file_service(settings config) : config_(std::move(config)) {
    auto runtimes = test_runtimes();
    runtimes.spec = [](const settings& policy, const std::string& alias,
                       const std::string&) -> result<sandbox_spec> {
        sandbox_spec spec;
        spec.image = alias;
        spec.work_dir = policy.work_dir;
        return spec;
    };
    registry_ = session::create_registry({context(), config_, *store_, *host_, *clock_, workers_, authority_,
                                          std::move(runtimes), test_policy_text(), long_patience()});
    BOOST_REQUIRE(get(registry_->start()).has_value());
    open("s");
}

file_service::~file_service() {
    test::run(context(), registry_->shutdown(session::shutdown_mode::stop, std::chrono::seconds(5)));
    drain(); // operations that were given up end by themselves
}

void file_service::open(const std::string& id) {
    session::open_request request;
    request.session_id = id;
    BOOST_REQUIRE(get(registry_->open(std::move(request))).has_value());
}

void file_service::put(const std::string& path, const std::string& bytes) {
    const auto written = get(files().write("s", path, bytes));
    BOOST_REQUIRE(written.has_value());
    BOOST_TEST_REQUIRE(written->failure.value_or("") == "");
}

std::string file_service::read(const std::string& path, std::int64_t offset, std::int64_t limit) {
    auto content = get(files().read("s", {path, offset, limit}));
    BOOST_REQUIRE(content.has_value());
    return std::move(*content);
}

session::edit_answer file_service::edit(const std::string& path, const std::string& old_text,
                                        const std::string& new_text, bool all) {
    auto answer = get(files().edit("s", {path, old_text, new_text, all}));
    BOOST_REQUIRE(answer.has_value());
    return std::move(*answer);
}

session::event file_service::last_event() {
    const auto page = get(registry_->events("s", 0));
    BOOST_REQUIRE((page.has_value() && !page->events.empty()));
    return page->events.back();
}

} // namespace sandboxd::test
