// What a sandbox can see and do: real ones, of the image `host`.

#include "oci_fixture.hpp"

#include "launcher/cgroups.hpp"

#include <filesystem>
#include <sys/stat.h>

using namespace sandboxd;
using namespace sandboxd::test;
namespace fs = std::filesystem;

BOOST_FIXTURE_TEST_SUITE(oci_walls, oci_fixture, *boost::unit_test::precondition(can_run_sandboxes))

BOOST_AUTO_TEST_CASE(a_command_runs_where_and_as_what_was_asked_for) {
    start_service();
    auto wanted = spec();
    wanted.env = {{"GREETING", "two words"}};
    const auto box = open(wanted);
    BOOST_TEST(box->type() == "oci");
    BOOST_TEST(exec(box, "id -u; id -g; pwd; hostname; echo \"$GREETING\"; echo $HOME; umask") ==
               "0\n0\n/workspace\ntest-session\ntwo words\n/root\n0022\n");
    BOOST_TEST(exec(box, "stat -c '%U %a' / /workspace /tmp /etc/hosts") ==
               "root 755\nroot 755\nroot 1777\nroot 644\n");
    BOOST_TEST(exec(box, "touch /etc/made /usr/made; ls /etc/made") ==
               "touch: cannot touch '/usr/made': Read-only file system\n/etc/made\n");
    BOOST_TEST(exec(box, "readlink /proc/1/fd/0 /proc/1/fd/1 /proc/1/fd/2; ls /proc/1/fd | wc -l") ==
               "/dev/null\n/dev/null\n/dev/null\n4\n");
    close(box);
}

BOOST_AUTO_TEST_CASE(root_inside_is_nobody_outside_and_no_two_share_a_uid) {
    start_service();
    const auto one = open(spec());
    const auto two = open(spec());
    const auto uid = [&](const std::shared_ptr<sandbox>& box) {
        struct stat status{};
        BOOST_REQUIRE(::stat(("/proc/" + std::to_string(pid_of(*this, box))).c_str(), &status) == 0);
        return status.st_uid;
    };
    BOOST_TEST(uid(one) >= 0x10000000U);
    BOOST_TEST(uid(two) >= 0x10000000U);
    BOOST_TEST(uid(one) % 65536 == 0U);
    BOOST_TEST(uid(one) != uid(two));
    BOOST_TEST(exec(one, "cat /proc/self/uid_map | tr -s ' '") ==
               " 0 " + std::to_string(uid(one)) + " 65536\n");
    close(one);
    close(two);
}

BOOST_AUTO_TEST_CASE(privileges_are_those_of_an_ordinary_container) {
    start_service();
    const auto box = open(spec());
    // The system-call filter is the real agent's: see tests/service/test_filter.py.
    BOOST_TEST(exec(box, "grep -E '^(Cap|NoNewPrivs)' /proc/self/status | tr -s '\\t ' ' '") ==
               "CapInh: 0000000000000000\nCapPrm: 00000000a80425fb\nCapEff: 00000000a80425fb\n"
               "CapBnd: 00000000a80425fb\nCapAmb: 0000000000000000\nNoNewPrivs: 1\n");
    BOOST_TEST(exec(box, "mount -t tmpfs none /mnt 2>&1 | grep -c permi") == "1\n");
    BOOST_TEST(exec(box, "echo x > /proc/sys/kernel/hostname; true") ==
               "/bin/sh: 1: cannot create /proc/sys/kernel/hostname: Read-only file system\n");
    BOOST_TEST(
        exec(box, "wc -c < /proc/keys; wc -c < /proc/timer_list; ls /sys/firmware /proc/acpi | grep -v :") ==
        "0\n0\n\n");
    BOOST_TEST(exec(box, "mknod /tmp/disk b 254 0 2>&1 | grep -c permi") == "1\n");
    BOOST_TEST(exec(box, "touch /sys/fs/cgroup/x 2>&1 | grep -c Read-only") == "1\n");
    BOOST_TEST(exec(box, "ulimit -c; touch /sys/fs/cgroup/pids/x 2>&1 | grep -c -E 'Read-only|No such'") ==
               "0\n1\n");
    close(box);
}

BOOST_AUTO_TEST_CASE(the_network_is_a_loopback_and_nothing_else) {
    start_service();
    const auto box = open(spec());
    BOOST_TEST(exec(box, "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '") == "lo\n");
    BOOST_TEST(
        exec(box,
             "perl -MIO::Socket::INET -e 'my $l = IO::Socket::INET->new(Listen => 1, LocalAddr => "
             "\"127.0.0.1\") or die; my $c = IO::Socket::INET->new(PeerAddr => \"localhost\", PeerPort => "
             "$l->sockport) or die; print \"connected\\n\"'") == "connected\n");
    BOOST_TEST(
        exec(box,
             "perl -MIO::Socket::INET -e 'IO::Socket::INET->new(PeerAddr => \"192.0.2.1\", PeerPort => 80) "
             "or print $!, \"\\n\"'") == "Network is unreachable\n");
    close(box);
}

BOOST_AUTO_TEST_CASE(the_image_host_shows_nothing_of_the_hosts_own) {
    start_service();
    const auto box = open(spec());
    BOOST_TEST(exec(box, "ls -A /root /home /srv /mnt /media /opt /var/lib /var/log | grep -v :") ==
               "\n\n\n\n\n\n\n");
    BOOST_TEST(exec(box, "ls -A /run") == "lock\n");
    BOOST_TEST(exec(box, "ls /etc/shadow /etc/sudoers /etc/ssh /etc/machine-id /etc/fstab 2>/dev/null") ==
               "");
    BOOST_TEST(exec(box, "cut -d: -f1 /etc/passwd | tr '\\n' ' '") == "root daemon nobody ");
    // Root inside reads no more of /usr than anybody: what only the host's root may read stays shut.
    BOOST_TEST(exec(box, "stat -c %U /usr/bin/perl") == "nobody\n");
    BOOST_TEST(exec(box, "find / -xdev -type s -o -path /proc -prune -false | wc -l") == "0\n");
    BOOST_TEST(exec(box, "perl -e 'print 6 * 7, \"\\n\"'") == "42\n");
    close(box);
}

BOOST_AUTO_TEST_CASE(crun_has_the_same_walls_and_limits) {
    start_service();
    auto wanted = spec();
    wanted.oci_runtime = "crun";
    wanted.limits.pids = 12;
    const auto box = open(wanted);
    BOOST_TEST(exec(box, "cat /proc/self/uid_map | tr -s ' '").find(" 0 ") == 0U);
    BOOST_TEST(exec(box, "cat /dev/kmsg /dev/mem 2>&1 | grep -c 'No such file'") == "2\n");
    const auto usage = get(box->usage());
    BOOST_REQUIRE(usage.has_value());
    BOOST_TEST(*usage->memory_limit_bytes == 256U << 20);
    const auto layout = launcher::read_cgroup_layout();
    const auto cgroup = layout.directory("pids", launcher::cgroup_path(options.service_uuid, box->handle()));
    BOOST_TEST(read_text(cgroup + "/pids.max") == "12\n"); // exactly, once it runs
    close(box);
}

BOOST_AUTO_TEST_CASE(the_workspace_counts_ids_from_zero) {
    start_service();
    auto wanted = spec();
    wanted.workspace_dir = directory + "/root/id one/workspace";
    const auto box = open(wanted);
    BOOST_TEST(exec(box, "echo hello > file; stat -c '%u:%g %a' . file") == "0:0 755\n0:0 644\n");
    struct stat status{};
    BOOST_REQUIRE(::stat((*wanted.workspace_dir + "/file").c_str(), &status) == 0);
    BOOST_TEST(status.st_uid == 0U);
    BOOST_REQUIRE(::stat((directory + "/root/id one").c_str(), &status) == 0);
    BOOST_TEST((status.st_mode & 07777) == 0700U);
    BOOST_TEST(
        exec(box, "grep -c 'nosuid,nodev.* /workspace\\|/workspace rw,nosuid,nodev' /proc/self/mountinfo") ==
        "1\n");
    close(box);
    BOOST_TEST(read_text(*wanted.workspace_dir + "/file") == "hello\n");
    wanted.uid = 1000; // contract 4.6.4: that directory only, owner only
    const auto other = open(wanted);
    BOOST_TEST(exec(other, "stat -c '%u:%g' . file") == "1000:0\n0:0\n");
    BOOST_REQUIRE(::stat(wanted.workspace_dir->c_str(), &status) == 0);
    BOOST_TEST(status.st_uid == 1000U);
    close(other);
}

BOOST_AUTO_TEST_CASE(a_long_state_directory_is_no_trouble) {
    options.state_dir = directory + "/" + std::string(120, 'l') + "/a,b:c d\\e\"f";
    fs::create_directories(options.state_dir);
    start_service();
    const auto box = open(spec());
    BOOST_TEST(exec(box, "echo yes") == "yes\n");
    close(box);
}

BOOST_AUTO_TEST_SUITE_END()
