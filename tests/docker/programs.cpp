// What we start: ssh and credential helpers, played by shell scripts.

#include "docker/credential_helper.hpp"
#include "docker/engine.hpp"
#include "docker/program.hpp"
#include "support/run.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace sandboxd;
using namespace sandboxd::docker;
using namespace std::chrono_literals;

namespace {

namespace fs = std::filesystem;

/// Plays `ssh HOST docker system dial-stdio`: answers every request that has no body.
constexpr const char* good_ssh = R"sh(#!/bin/sh
echo "$@" >> "$(dirname "$0")/calls"
while read -r method target version; do
    while read -r line && [ "$line" != "$(printf '\r')" ];
do { :;
} done
    case "$target" in
    */json) body='{"Id":"c"}' ;;
    /version) body='{"ApiVersion":"1.41","MinAPIVersion":"1.12"}' ;;
    *) body='' ;;
    esac
    printf 'HTTP/1.1 200 OK\r\nApi-Version: 1.41\r\nContent-Length: %d\r\n\r\n%s' "${#body}" "$body"
done
)sh";

struct programs {
    programs() {
        std::string pattern = (fs::temp_directory_path() / "programs-XXXXXX").string();
        folder = ::mkdtemp(pattern.data());
    }
    ~programs() {
        context.restart();
        context.run_for(60s);
        // Nothing that we started is left, not even as a zombie.
        BOOST_TEST(::waitpid(-1, nullptr, WNOHANG) == -1);
        BOOST_TEST(errno == ECHILD);
        fs::remove_all(folder);
    }

    std::string put(const std::string& name, const std::string& text) const {
        const fs::path path = folder / name;
        std::ofstream(path) << text;
        fs::permissions(path, fs::perms::owner_all);
        return path.string();
    }

    std::shared_ptr<engine> over_ssh(const std::string& program, std::size_t at_once = 32) {
        engine_options options;
        options.client.dial.ssh_program = program;
        options.client.pool.at_once = at_once;
        options.client.pool.idle = at_once;
        return create_engine(context.get_executor(), parse_host("ssh://me@box:2222", false).value(), options)
            .value();
    }

    std::vector<std::string> calls() const {
        std::ifstream file(folder / "calls");
        std::vector<std::string> all;
        for (std::string line; std::getline(file, line);) {
            all.push_back(line);
        }
        return all;
    }

    fs::path folder;
    boost::asio::io_context context;
};

/// For the process' environment, put back afterwards.
struct with_path {
    explicit with_path(const fs::path& first) : before(std::getenv("PATH")) {
        ::setenv("PATH", (first.string() + ":" + before).c_str(), 1);
    }
    ~with_path() { ::setenv("PATH", before.c_str(), 1); }
    std::string before;
}; // namespace

file_reader config(std::string text) {
    return [text](const std::string&) -> result<std::optional<std::string>> {
        return std::optional<std::string>(text);
    };
}

} // namespace

// hard-cases B7 07
BOOST_FIXTURE_TEST_CASE(calls_over_ssh_share_a_few_processes, programs) {
    auto docker = over_ssh(put("ssh", good_ssh), 3);
    int good = 0;
    for (int i = 0; i < 30; ++i) {
        boost::asio::co_spawn(context, docker->inspect("c", 60s),
                              [&](const std::exception_ptr& thrown, auto found) {
                                  good += !thrown && found.has_value() && found->id == "c" ? 1 : 0;
                              });
    }
    context.run_for(60s);
    BOOST_TEST(good == 30);
    const auto made = calls();
    BOOST_TEST(made.size() <= 9U); // three calls at once, each may negotiate first
    BOOST_TEST(made.at(0) ==
               "-o BatchMode=yes -o ConnectTimeout=30 -T -l me -p 2222 -- box docker system dial-stdio");
}

BOOST_FIXTURE_TEST_CASE(what_ssh_says_is_passed_on, programs) {
    auto docker =
        over_ssh(put("ssh", "#!/bin/sh\necho 'me@box: Permission denied (publickey).' >&2\nexit 255\n"));
    const auto failed = test::get(context, docker->ping(10s)).error();
    BOOST_TEST(static_cast<int>(failed.code) == static_cast<int>(errc::unavailable));
    BOOST_TEST(failed.message.ends_with("(me@box: Permission denied (publickey).)"));
    auto none = over_ssh((folder / "no-such-ssh").string());
    const auto absent = test::get(context, none->ping(10s)).error();
    BOOST_TEST(absent.message.find("cannot start") != std::string::npos);
}

BOOST_FIXTURE_TEST_CASE(an_ssh_that_hangs_is_ended, programs) {
    auto docker = over_ssh(put("ssh", "#!/bin/sh\ntrap '' TERM\nwhile :; do sleep 0.05; done\n"));
    BOOST_TEST(static_cast<int>(test::get(context, docker->ping(200ms)).error().code) ==
               static_cast<int>(errc::timeout));
}

BOOST_FIXTURE_TEST_CASE(credential_helpers_are_asked, programs) {
    const with_path first(folder);
    put("docker-credential-good",
        "#!/bin/sh\nread -r server\necho \"{\\\"Username\\\":\\\"$1\\\",\\\"Secret\\\":"
        "\\\"$server\\\"}\"\n");
    put("docker-credential-none", "#!/bin/sh\necho credentials not found in native keychain\nexit 1\n");
    put("docker-credential-bad", "#!/bin/sh\necho the keychain is locked\nexit 1\n");
    const auto ask = [&](const std::string& helper) {
        return test::get(context,
                         registry_header("/d", "ghcr.io", config(R"({"credsStore":")" + helper + "\"}")));
    };
    credentials expected;
    expected.server = "ghcr.io";
    expected.user = "get";
    expected.password = "ghcr.io";
    BOOST_TEST(ask("good").value() == auth_header(expected));
    BOOST_TEST(ask("none").value() == "");
    BOOST_TEST(ask("bad").error().message ==
               "the credential helper for ghcr.io failed: the keychain is locked");
    BOOST_TEST(
        ask("absent").error().message ==
        "registry credentials for ghcr.io: cannot start docker-credential-absent: No such file or directory");
}

// Programs that run to their end
// ------------------------------------------------------------------------------------

namespace {

/// Starts another program, as `docker` starts its plugin, and tells both process ids.
constexpr const char* with_a_child = R"sh(#!/bin/sh
%s
sh -c 'trap "" TERM; while :; do sleep 0.05; done' >/dev/null 2>&1 </dev/null &
echo "$$ $!"
wait
)sh";

std::string of_two(const std::string& before) {
    std::string text = with_a_child;
    return text.replace(text.find("%s"), 2, before);
}

bool is_there(int pid) {
    // One that nobody has reaped yet is gone, too.
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string line;
    std::getline(file, line);
    return !line.empty() && line.find(") Z ") == std::string::npos;
}

bool ends(const std::vector<int>& pids) {
    const auto until = std::chrono::steady_clock::now() + 60s;
    while (std::chrono::steady_clock::now() < until) {
        if (std::none_of(pids.begin(), pids.end(), is_there)) {
            return true;
        }
        std::this_thread::sleep_for(20ms);
    }
    return false;
}

std::vector<int> pids_in(const std::string& line) {
    std::istringstream words(line);
    std::vector<int> out;
    for (int pid = 0; words >> pid;) {
        out.push_back(pid);
    }
    return out;
}

} // namespace

BOOST_FIXTURE_TEST_CASE(a_program_gets_its_input_and_both_its_streams_are_heard, programs) {
    std::vector<std::string> heard;
    const auto hear = [&](const std::string& line) { heard.push_back(line); };
    const auto script = put("one", "#!/bin/sh\ncat\necho error >&2\nexit 7\n");
    const auto ended = test::get(context, run_program({script, "a b"}, "in\nput\n", hear, 60s));
    BOOST_TEST(ended.value().exit_code == 7);
    const std::vector<std::string> expected{"in", "put", "error"};
    BOOST_TEST(heard == expected, boost::test_tools::per_element());
    BOOST_TEST(test::get(context, run_program({put("two", "#!/bin/sh\nkill -9 $$\n")}, "", {}, 60s))
                   .value()
                   .exit_code == 137);
    BOOST_TEST(test::get(context, run_program({"no-such-program"}, "", {}, 60s)).value().exit_code == 127);
}

// Contract 4.4.7: `docker` and its plugin.
BOOST_FIXTURE_TEST_CASE(a_program_that_takes_too_long_is_ended_with_what_it_has_started, programs) {
    for (const char* before : {":", "trap '' TERM"}) {
        std::vector<int> started;
        const auto script = put("two", of_two(before));
        const auto ended = test::get(
            context,
            run_program({script}, "", [&](const std::string& line) { started = pids_in(line); }, 5s));
        BOOST_TEST(static_cast<int>(ended.error().code) == static_cast<int>(errc::timeout));
        BOOST_TEST_REQUIRE(started.size() == 2U);
        context.restart();
        context.run_for(60s);
        BOOST_TEST(ends(started));
    }
}

BOOST_FIXTURE_TEST_CASE(a_program_ends_with_us_when_we_are_killed, programs) {
    const auto script =
        put("two", "#!/bin/sh\nsleep 600 &\necho \"$$ $!\" >>" + (folder / "pids").string() + "\nwait\n");
    const pid_t us = ::fork();
    if (us == 0) {
        boost::asio::io_context its;
        boost::asio::co_spawn(its, run_program({script}, "", {}, 600s),
                              [](const std::exception_ptr&, const auto&) {});
        its.run();
        ::_exit(0);
    }
    std::vector<int> started;
    const auto until = std::chrono::steady_clock::now() + 60s;
    while (started.size() != 2 && std::chrono::steady_clock::now() < until) {
        std::this_thread::sleep_for(20ms);
        std::ifstream file(folder / "pids");
        std::string line;
        std::getline(file, line);
        started = pids_in(line);
    }
    ::kill(us, SIGKILL);
    ::waitpid(us, nullptr, 0);
    BOOST_TEST_REQUIRE(started.size() == 2U);
    BOOST_TEST(ends(started));
}
