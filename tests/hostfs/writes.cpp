// Writes that are cut off, and writes where a file can't be without a name.
#include "fixture.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>

#include <csignal>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hostfs_tests {

namespace data = boost::unit_test::data;

BOOST_FIXTURE_TEST_SUITE(hostfs_writes, workspace_fixture)

BOOST_DATA_TEST_CASE(a_full_disk_keeps_the_old_file, data::make(both_walks), how) {
    const auto in = open(how);
    put(work("f"), "old");
    // A limit of the process stands in for a full disk: the write ends in the middle just the same.
    struct rlimit_guard {
        rlimit_guard() {
            ::getrlimit(RLIMIT_FSIZE, &before);
            rlimit small = before;
            small.rlim_cur = 4096;
            ::setrlimit(RLIMIT_FSIZE, &small);
            old = std::signal(SIGXFSZ, SIG_IGN);
        }
        ~rlimit_guard() {
            ::setrlimit(RLIMIT_FSIZE, &before);
            std::signal(SIGXFSZ, old);
        }
        rlimit before{};
        void (*old)(int) = nullptr;
    };
    {
        const rlimit_guard full;
        const auto written = blocking::write(in, path("/workspace/f"), std::string(10'000, 'x'), soon());
        BOOST_TEST((!written && written.error().why == refusal::ask_sandbox));
    }
    BOOST_TEST(get(work("f")) == "old");
    BOOST_TEST(std::distance(fs::directory_iterator(work()), fs::directory_iterator()) == 1);
}

// A limit of the process whose signal ends it stands in for a kill: it comes after the first step of the
// write.
BOOST_DATA_TEST_CASE(a_writer_that_is_killed_leaves_everything_as_it_was, data::make(both_walks), how) {
    const auto in = open(how);
    put(work("f"), "old");
    for (const char* const name : {"/workspace/f", "/workspace/new"}) {
        BOOST_TEST_INFO(name);
        const std::string large(3 * 1024 * 1024, 'x');
        const pid_t writer = ::fork();
        BOOST_REQUIRE(writer >= 0);
        if (writer == 0) {
            const rlimit none{0, 0};
            const rlimit small{2 * 1024 * 1024, 2 * 1024 * 1024};
            ::setrlimit(RLIMIT_CORE, &none);
            ::setrlimit(RLIMIT_FSIZE, &small);
            std::signal(SIGXFSZ, SIG_DFL);
            (void)blocking::write(in, path(name), large, soon());
            ::_exit(0);
        }
        int status = 0;
        BOOST_REQUIRE(::waitpid(writer, &status, 0) == writer);
        BOOST_TEST((WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ));
        BOOST_TEST(get(work("f")) == "old");
        BOOST_TEST(std::distance(fs::directory_iterator(work()), fs::directory_iterator()) == 1);
    }
}

// As on a file system that has no files without a name.
BOOST_DATA_TEST_CASE(a_write_where_no_file_can_be_without_a_name, data::make(both_walks), how) {
    if (::geteuid() != 0) {
        BOOST_TEST_MESSAGE("only root can mount");
        return;
    }
    const auto in = open(how);
    put(work("f"), "old");
    const pid_t writer = ::fork();
    BOOST_REQUIRE(writer >= 0);
    if (writer == 0) {
        const bool hidden = ::unshare(CLONE_NEWNS) == 0 &&
                            ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                            ::mount("none", "/proc", "tmpfs", 0, nullptr) == 0;
        const bool replaced = why(blocking::write(in, path("/workspace/f"), "new", soon())) == "done";
        const bool created = why(blocking::write(in, path("/workspace/g"), "new", soon())) == "done";
        const auto late = std::chrono::steady_clock::now() - std::chrono::seconds(1);
        const bool stopped = why(blocking::write(in, path("/workspace/f"), "x", late)) == "timeout";
        ::_exit(hidden && replaced && created && stopped ? 0 : 1);
    }
    int status = 0;
    BOOST_REQUIRE(::waitpid(writer, &status, 0) == writer);
    BOOST_TEST(status == 0);
    BOOST_TEST(get(work("f")) == "new");
    BOOST_TEST(get(work("g")) == "new");
    BOOST_TEST(std::distance(fs::directory_iterator(work()), fs::directory_iterator()) == 2);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace hostfs_tests
