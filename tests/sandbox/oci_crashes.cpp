// Ends of the service and of its launcher in the middle of something; nothing is left behind (the fixture
// checks).

#include "oci_fixture.hpp"

#include "core/gate.hpp"
#include "core/spawn.hpp"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <unistd.h>

using namespace sandboxd;
using namespace sandboxd::test;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

launcher::start_sandbox request_for(const std::string& slot, const std::string& image) {
    launcher::start_sandbox request;
    request.slot = slot;
    request.hostname = "box";
    request.image = image;
    request.work_dir = "/workspace";
    return request;
}

task<void> start_and_drop(std::shared_ptr<launcher::client> client, launcher::start_sandbox request) {
    static_cast<void>(co_await client->start(std::move(request), 30s));
}

task<void> import_and_drop(std::shared_ptr<launcher::client> client, std::string reference) {
    launcher::import_image request;
    request.reference = std::move(reference);
    static_cast<void>(co_await client->import(std::move(request), {}, launcher::import_deadline));
}

} // namespace

BOOST_FIXTURE_TEST_SUITE(oci_crashes, oci_fixture, *boost::unit_test::precondition(can_run_sandboxes))

BOOST_AUTO_TEST_CASE(the_end_of_the_service_in_the_middle_of_a_start) {
    std::mt19937 random(7);
    for (int round = 0; round < 4; ++round) {
        start_service();
        const auto image = get(client->import({"host", true, ""}, {}, launcher::import_deadline));
        BOOST_REQUIRE(image.has_value());
        core::gate running;
        for (int i = 0; i < 3; ++i) {
            auto request = request_for("r" + std::to_string(round) + "-" + std::to_string(i), image->key);
            core::spawn(context.get_executor(), "start", running, start_and_drop(client, std::move(request)));
        }
        context.restart();
        context.run_for(std::chrono::milliseconds(random() % 120));
        running.close();
        stop_service(); // the launcher finishes what it has begun
        test::run(context, running.drained());
    }
    start_service();
    remove_all();
    BOOST_TEST(owned().empty());
}

BOOST_AUTO_TEST_CASE(a_launcher_that_is_killed_leaves_only_what_can_be_removed) {
    std::mt19937 random(11);
    for (int round = 0; round < 6; ++round) {
        start_service();
        const auto image = get(client->import({"host", true, ""}, {}, launcher::import_deadline));
        BOOST_REQUIRE(image.has_value());
        core::gate running;
        for (int i = 0; i < 2; ++i) {
            auto request = request_for("k" + std::to_string(round) + "-" + std::to_string(i), image->key);
            core::spawn(context.get_executor(), "start", running, start_and_drop(client, std::move(request)));
        }
        context.restart();
        context.run_for(std::chrono::milliseconds(random() % 150));
        // The launcher and, as in a machine-wide kill, its workers.
        std::string workers = read_text("/proc/" + std::to_string(launcher_pid) + "/task/" +
                                        std::to_string(launcher_pid) + "/children");
        ::kill(launcher_pid, SIGKILL);
        std::istringstream list(workers);
        for (pid_t pid = 0; list >> pid;) {
            if (read_text("/proc/" + std::to_string(pid) + "/comm") == "sandboxd-work\n") {
                ::kill(pid, SIGKILL);
            }
        }
        running.close();
        test::run(context, running.drained());
        stop_service();
    }
    start_service();
    remove_all();
    BOOST_TEST(owned().empty());
}

BOOST_AUTO_TEST_CASE(an_import_does_not_keep_the_launcher_when_the_service_has_ended) {
    // In place of skopeo something that takes for ever.
    const auto programs = directory + "/bin";
    fs::create_directory(programs);
    std::ofstream(programs + "/skopeo") << "#!/bin/sh\ntouch " << directory << "/begun\nexec sleep 600\n";
    fs::permissions(programs + "/skopeo", fs::perms::owner_all);
    std::ofstream(directory + "/saved.tar") << "an archive";
    const std::string path = std::getenv("PATH");
    ::setenv("PATH", (programs + ":" + path).c_str(), 1);
    start_service();
    ::setenv("PATH", path.c_str(), 1);
    core::gate running;
    core::spawn(context.get_executor(), "import", running,
                import_and_drop(client, "docker-archive:" + directory + "/saved.tar"));
    while (!fs::exists(directory + "/begun")) {
        context.restart();
        context.run_for(std::chrono::milliseconds(10));
    }
    running.close();
    const auto began = std::chrono::steady_clock::now();
    stop_service();
    BOOST_TEST((std::chrono::steady_clock::now() - began < std::chrono::seconds(60)));
    test::run(context, running.drained());
    start_service();
    BOOST_TEST(owned().empty());
}

BOOST_AUTO_TEST_SUITE_END()
