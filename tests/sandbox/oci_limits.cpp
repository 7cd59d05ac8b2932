// The limits of contract 4.2 hold in real sandboxes.

#include "oci_fixture.hpp"

#include "launcher/cgroups.hpp"

using namespace sandboxd;
using namespace sandboxd::test;

namespace {

constexpr const char* memory_hog = "perl -e '$x = \"a\" x (1024 * 1024 * 200); print length($x), \"\\n\"'";

bool skip_without(const char* controller) {
    const auto layout = launcher::read_cgroup_layout();
    const bool missing = !layout.is_unified() && !layout.controllers.contains(controller);
    if (missing) {
        BOOST_TEST_MESSAGE("skipped: this host has no controller " << controller);
    }
    return missing;
}

} // namespace

BOOST_FIXTURE_TEST_SUITE(oci_limits, oci_fixture, *boost::unit_test::precondition(can_run_sandboxes))

BOOST_AUTO_TEST_CASE(memory_is_limited_and_the_kill_leaves_evidence) {
    if (skip_without("memory")) {
        return;
    }
    start_service();
    auto wanted = spec();
    wanted.limits.memory_bytes = 64 << 20;
    const auto box = open(wanted);
    exec_request hog;
    hog.command = memory_hog;
    const auto killed = get(box->exec(hog));
    BOOST_REQUIRE(killed.has_value());
    BOOST_TEST(killed->output.find("209715200") == std::string::npos);
    BOOST_TEST(killed->status.oom_killed);
    BOOST_TEST(box->alive());
    exec_request small;
    small.command = "echo fine";
    const auto fine = get(box->exec(small));
    BOOST_REQUIRE(fine.has_value());
    BOOST_TEST(fine->output == "fine\n");
    BOOST_TEST(!fine->status.oom_killed);
    const auto usage = get(box->usage());
    BOOST_REQUIRE(usage.has_value());
    BOOST_TEST(*usage->memory_limit_bytes == 67108864U);
    BOOST_TEST(*usage->memory_bytes <= 67108864U);
    close(box);
    BOOST_TEST((get(box->usage()).error().code == errc::gone));
}

BOOST_AUTO_TEST_CASE(processes_are_limited) {
    if (skip_without("pids")) {
        return;
    }
    start_service();
    auto wanted = spec();
    wanted.limits.pids = 16;
    const auto box = open(wanted);
    const auto made =
        exec(box, "perl -e 'my $n = 0; while ($n < 100) { my $p = fork(); last unless defined $p; if (!$p) "
                  "{ sleep 1; exit } $n++ } print \"$n\\n\"'");
    BOOST_TEST(std::stoi(made) < 16);
    BOOST_TEST(std::stoi(made) > 8);
    const auto usage = get(box->usage());
    BOOST_TEST(*usage->pids <= 16U);
    close(box);
}

BOOST_AUTO_TEST_CASE(tmp_is_limited_and_its_programs_run) {
    start_service();
    auto wanted = spec();
    wanted.limits.tmpfs_size = "1m";
    const auto box = open(wanted);
    BOOST_TEST(exec(box, "head -c 2000000 /dev/zero > /tmp/big; wc -c < /tmp/big").find("1048576\n") !=
               std::string::npos);
    BOOST_TEST(exec(box, "rm /tmp/big; printf '#!/bin/sh\\necho ran\\n' > /tmp/x; chmod +x /tmp/x; /tmp/x") ==
               "ran\n");
    close(box);
    wanted.limits.tmpfs_size.reset();
    const auto without = open(wanted);
    BOOST_TEST(exec(without, "head -c 2000000 /dev/zero > /tmp/big; wc -c < /tmp/big; stat -c %a /tmp") ==
               "2000000\n1777\n");
    close(without);
}

BOOST_AUTO_TEST_CASE(cpu_time_is_counted) {
    if (skip_without("cpuacct")) {
        return;
    }
    start_service();
    const auto box = open(spec());
    BOOST_TEST(!get(box->usage())->cpu_percent.has_value());
    BOOST_TEST(exec(box, "perl -e 'my $t = time + 1; 1 while time < $t; print 1'") == "1");
    const auto second = get(box->usage());
    BOOST_REQUIRE(second->cpu_percent.has_value());
    BOOST_TEST(*second->cpu_percent > 0.0);
    close(box);
}

BOOST_AUTO_TEST_CASE(open_files_are_limited_so_that_closing_them_all_is_quick) {
    start_service();
    const auto box = open(spec());
    const auto limit = std::stol(exec(box, "ulimit -n"));
    BOOST_TEST(limit <= 65536);
    BOOST_TEST(limit >= 1024);
    BOOST_TEST(
        exec(box, "perl -MPOSIX -e 'POSIX::close($_) for 3 .. POSIX::sysconf(4) - 1; print \"closed\"'") ==
        "closed");
    close(box);
}

BOOST_AUTO_TEST_SUITE_END()
