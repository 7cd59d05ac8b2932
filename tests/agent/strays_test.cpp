// How a command's processes are found where the kernel has no subreapers.

#include "agent/process_tree.hpp"

#include <boost/test/unit_test.hpp>

#include <csignal>
#include <fstream>
#include <string>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace sandboxd::agent;

/// A process in a session of its own, started with one variable, whose parent has ended: below this one.
pid_t start_stray(const char* variable) {
    int ends[2];
    BOOST_REQUIRE_EQUAL(::pipe(ends), 0);
    const pid_t parent = ::fork();
    if (parent == 0) {
        const pid_t stray = ::fork();
        if (stray == 0) {
            ::setsid();
            std::string text = variable;
            char* environment[] = {text.data(), nullptr};
            std::string program = "sleep";
            std::string argument = "300";
            char* arguments[] = {program.data(), argument.data(), nullptr};
            ::execve("/bin/sleep", arguments, environment);
            ::_exit(127);
        }
        if (::write(ends[1], &stray, sizeof stray) != sizeof stray) {
            ::_exit(1);
        }
        ::_exit(0);
    }
    pid_t stray = -1;
    BOOST_REQUIRE_EQUAL(::read(ends[0], &stray, sizeof stray), static_cast<ssize_t>(sizeof stray));
    ::close(ends[0]);
    ::close(ends[1]);
    ::waitpid(parent, nullptr, 0);
    const auto file = "/proc/" + std::to_string(stray) + "/cmdline";
    for (int tries = 0; tries < 60'000; ++tries) {
        std::ifstream text(file);
        std::string first;
        if (std::getline(text, first, '\0') && first == "sleep") {
            break;
        }
        ::usleep(1000);
    }
    return stray;
}

BOOST_AUTO_TEST_SUITE(agent_strays)

BOOST_AUTO_TEST_CASE(without_subreapers_strays_are_told_by_session_and_mark) {
    ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); // stands in for process 1 of a sandbox
    const pid_t marked = start_stray("MARK=one");
    const pid_t similar = start_stray("MARK=one.more");
    const pid_t in_session = start_stray("MARK=three");
    const pid_t root = ::fork(); // a supervisor without any descendant
    if (root == 0) {
        ::pause();
        ::_exit(0);
    }
    tree_signaller signaller({.keeper = ::getpid(), .session = in_session, .mark = "MARK=one"});
    BOOST_TEST(signaller.round(root, SIGTERM) == 2U);
    int status = 0;
    BOOST_TEST(::waitpid(marked, &status, 0) == marked);
    BOOST_TEST(WTERMSIG(status) == SIGTERM);
    BOOST_TEST(::waitpid(in_session, &status, 0) == in_session);
    BOOST_TEST(WTERMSIG(status) == SIGTERM);
    BOOST_TEST(signaller.round(root, SIGKILL) == 0U);
    BOOST_TEST(::waitpid(similar, &status, WNOHANG) == 0);
    // With subreapers nothing strays.
    BOOST_TEST(tree_signaller().round(root, SIGKILL) == 0U);
    for (const pid_t one : {similar, root}) {
        ::kill(one, SIGKILL);
        ::waitpid(one, nullptr, 0);
    }
    ::prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
