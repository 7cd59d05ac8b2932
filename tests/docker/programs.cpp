// What we start: ssh and credential helpers, played by shell scripts.

#include "docker/credential_helper.hpp"
#include "docker/engine.hpp"
#include "support/run.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/test/unit_test.hpp>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <sys/wait.h>

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
