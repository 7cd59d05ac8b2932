#include "docker_fixture.hpp"

#include "core/deadline.hpp"
#include "core/random.hpp"
#include "sandbox/docker/image_source.hpp"

#include <boost/test/unit_test.hpp>

#include <filesystem>
#include <fstream>

namespace sandboxd::test {

namespace {

task<result<std::shared_ptr<sandbox>>> make_plain(std::shared_ptr<sandboxes::sandbox_host> host, bool adopted,
                                                  std::optional<error>* failure) {
    if (*failure) {
        co_return *std::exchange(*failure, std::nullopt);
    }
    std::shared_ptr<sandbox> made = std::make_shared<plain_sandbox>(std::move(host), adopted);
    co_return made;
}

task<result<std::shared_ptr<sandbox>>> open_with(std::shared_ptr<sandbox_builder> builder, sandbox_spec of) {
    auto slot = co_await builder->prepare(of);
    if (!slot) {
        co_return slot.error();
    }
    co_return co_await builder->build(std::move(of), *slot);
}

task<void> sleep(std::chrono::milliseconds time) {
    co_await core::sleep_for(time);
}

} // namespace

docker_fixture::docker_fixture()
    : state((std::filesystem::temp_directory_path() / ("docker-" + core::random_hex(8))).string()),
      agent(state + "/agent") {
    std::filesystem::create_directory(state);
    std::ofstream(agent) << "the agent";
    daemon->facts.os_type = "linux";
    daemon->facts.runtimes = {"runc", "runsc"};
    daemon->add_image("box");
    make_builder();
}

docker_fixture::~docker_fixture() {
    builder.reset();
    keeper->close();
    background.close();
    test::run(context, background.drained());
    std::filesystem::remove_all(state);
}

void docker_fixture::make_builder() {
    sandboxes::docker_backend::builder_options options;
    options.service_uuid = "uuid-1";
    options.executor = context.get_executor();
    options.background = &background;
    options.engine = daemon;
    images::keeper_options images;
    images.executor = context.get_executor();
    images.background = &background;
    images.source =
        sandboxes::docker_backend::create_image_source({daemon, false, {{"HTTP_PROXY", "http://p"}}});
    keeper = images::create_keeper(std::move(images));
    options.images = keeper;
    options.agent_program = agent;
    options.state_directory = state;
    options.may_be_local = may_be_local;
    options.look_every = std::chrono::milliseconds(20);
    options.factory = [failure = &factory_error](std::shared_ptr<sandboxes::sandbox_host> host,
                                                 bool adopted) {
        return make_plain(std::move(host), adopted, failure);
    };
    builder = get(sandboxes::docker_backend::create_builder(std::move(options))).value();
    until([this] { return daemon->watched; });
}

sandbox_spec docker_fixture::spec(const std::string& image) const {
    sandbox_spec made;
    made.session_id = "s-1";
    made.image = image;
    made.work_dir = "/workspace";
    made.network_mode = "none";
    return made;
}

result<std::shared_ptr<sandbox>> docker_fixture::open(sandbox_spec of) {
    return get(open_with(builder, std::move(of)));
}

sandboxes::sandbox_host& docker_fixture::host_of(sandbox& one) {
    return *dynamic_cast<plain_sandbox&>(one).host;
}

void docker_fixture::settle(std::chrono::milliseconds time) {
    test::run(context, sleep(time));
}

void docker_fixture::until(const std::function<bool()>& what) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!what() && std::chrono::steady_clock::now() < limit) {
        settle(std::chrono::milliseconds(10));
    }
    BOOST_TEST_REQUIRE(what());
}

} // namespace sandboxd::test
