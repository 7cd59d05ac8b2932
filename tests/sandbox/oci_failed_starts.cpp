// Starts that fail: what is said of them, and that nothing is left behind (the fixture checks).

#include "oci_fixture.hpp"

#include "launcher/cgroups.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>

using namespace sandboxd;
using namespace sandboxd::test;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

BOOST_FIXTURE_TEST_SUITE(oci_failed_starts, oci_fixture, *boost::unit_test::precondition(can_run_sandboxes))

BOOST_AUTO_TEST_CASE(an_agent_that_does_not_serve_is_no_sandbox) {
    options.agent_arguments = {"-e", "print STDERR \"first\\nno luck\\n\"; exit 3", "--"};
    start_service();
    for (const char* runtime : {"runc", "crun"}) {
        auto wanted = spec();
        wanted.oci_runtime = runtime;
        const auto failed = try_open(wanted);
        BOOST_REQUIRE(!failed.has_value());
        BOOST_TEST((failed.error().code == errc::start_failed));
        BOOST_TEST(failed.error().message == "the agent: no luck");
    }
    BOOST_TEST(owned().empty());
}

BOOST_AUTO_TEST_CASE(an_agent_that_hangs_is_ended_at_the_deadline) {
    options.agent_arguments = {"-e", "sleep 1000", "--"};
    start_deadline = 3s;
    start_service();
    const auto failed = try_open(spec());
    BOOST_REQUIRE(!failed.has_value());
    BOOST_TEST((failed.error().code == errc::start_failed));
    BOOST_TEST(failed.error().message.find("in time") != std::string::npos, failed.error().message);
    BOOST_TEST(owned().empty()); // the fixture sees that no process is left
}

BOOST_AUTO_TEST_CASE(a_failed_start_leaves_nothing_but_words) {
    start_service();
    auto wanted = spec();
    wanted.image = "dir:" + directory + "/none";
    auto failed = try_open(wanted);
    BOOST_REQUIRE(!failed.has_value());
    BOOST_TEST((failed.error().code == errc::start_failed));
    BOOST_TEST(failed.error().message.find("No such file") != std::string::npos, failed.error().message);
    fs::create_directory(directory + "/odd");
    std::ofstream(directory + "/odd/proc") << "no directory";
    wanted.image = "dir:" + directory + "/odd"; // the runtime itself fails
    failed = try_open(wanted);
    BOOST_REQUIRE(!failed.has_value());
    BOOST_TEST(failed.error().message.find("runc failed:") == 0U, failed.error().message);
    BOOST_TEST(owned().empty());
    BOOST_TEST(remains().size() ==
               launcher::read_cgroup_layout().directories("/").size()); // the parents only
}

BOOST_AUTO_TEST_CASE(a_host_that_can_not_says_why) {
    options.runtime = "no-such-runtime";
    auto socket = launcher::start(options);
    BOOST_REQUIRE(socket.has_value());
    client = launcher::create_client(context.get_executor(), std::move(*socket));
    sandboxes::oci::builder_options wanted;
    wanted.launcher = client;
    wanted.executor = context.get_executor();
    const auto made = get(sandboxes::oci::create_builder(std::move(wanted)));
    BOOST_REQUIRE(!made.has_value());
    BOOST_TEST(made.error().message.find("'no-such-runtime' is not installed") != std::string::npos);
    stop_service();
}

/// The first call never comes back; that it is made again is said by an opened sandbox.
BOOST_AUTO_TEST_CASE(a_runtime_that_was_called_too_early_is_called_again) {
    options.config_patience = 0ms;
    options.runtime = directory + "/front";
    std::ofstream(options.runtime)
        << "#!/bin/sh\n"
           "for word; do [ \"$last\" != --bundle ] || bundle=$word; last=$word; done\n"
           "[ -z \"$bundle\" ] || [ -s \"$bundle/config.json\" ] || exec sleep 100000\n"
           "exec runc \"$@\"\n";
    fs::permissions(options.runtime, fs::perms::owner_all);
    start_service();
    close(open(spec()));
    stop_service();
}

BOOST_AUTO_TEST_CASE(a_missing_runtime_is_named_with_its_package) {
    const auto programs = directory + "/bin";
    fs::create_directory(programs);
    fs::create_symlink("/usr/sbin/runc", programs + "/runc");
    const std::string path = std::getenv("PATH");
    ::setenv("PATH", programs.c_str(), 1);
    start_service();
    ::setenv("PATH", path.c_str(), 1);
    for (const std::string name : {"crun", "runsc"}) {
        auto wanted = spec();
        wanted.oci_runtime = name;
        const auto failed = try_open(wanted);
        BOOST_REQUIRE(!failed.has_value());
        BOOST_TEST((failed.error().code == errc::start_failed));
        BOOST_TEST(failed.error().message ==
                   "the program '" + name + "' is not installed (on Debian: apt-get install " + name + ")");
    }
    for (const auto& note : builder->notes()) {
        BOOST_TEST(note.find("runsc") == std::string::npos, note);
    }
    BOOST_TEST(owned().empty());
    close(open(spec()));
}

BOOST_AUTO_TEST_SUITE_END()
