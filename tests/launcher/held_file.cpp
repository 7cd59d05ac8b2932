// A file whose readers wait for its content.

#include "launcher/blocking/held_file.hpp"

#include "launcher/blocking/files.hpp"
#include "support/scratch.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace sandboxd;
using namespace std::chrono_literals;
using launcher::blocking::held_file;
using launcher::blocking::read_file;
namespace fs = std::filesystem;

namespace {

std::string content_of(const std::string& file) {
    std::ifstream in(file); // which waits; read_file() never does
    return {std::istreambuf_iterator<char>(in), {}};
}

/// The kernel has told the holder that somebody waits.
bool is_waited_for(const std::string& file) {
    struct stat status{};
    BOOST_REQUIRE(::stat(file.c_str(), &status) == 0);
    const auto inode = ":" + std::to_string(status.st_ino) + " ";
    const auto until = std::chrono::steady_clock::now() + 60s;
    while (std::chrono::steady_clock::now() < until) {
        const auto locks = read_file("/proc/locks", 1 << 20).value();
        for (std::size_t at = 0; at < locks.size();) {
            const auto end = std::min(locks.find('\n', at), locks.size());
            const auto line = locks.substr(at, end - at);
            if (line.find("BREAKING") != std::string::npos && line.find(inode) != std::string::npos) {
                return true;
            }
            at = end + 1;
        }
        std::this_thread::sleep_for(1ms);
    }
    return false;
}

} // namespace

BOOST_FIXTURE_TEST_SUITE(launcher_held_file, test::scratch)

BOOST_AUTO_TEST_CASE(who_opens_it_waits_for_its_content) {
    const auto file = path + "/config.json";
    auto held = held_file::create(file, 0600, 1min);
    BOOST_REQUIRE(held.has_value());
    std::string seen;
    std::thread reader([&] { seen = content_of(file); });
    BOOST_TEST(is_waited_for(file));
    const std::string text(200'000, 'x');
    BOOST_TEST(held->holds()); // within half of the kernel's 45 s
    BOOST_TEST(held->fill(text).has_value());
    reader.join();
    BOOST_TEST((seen == text));
    BOOST_TEST((fs::status(file).permissions() == (fs::perms::owner_read | fs::perms::owner_write)));
    BOOST_TEST((content_of(file) == text)); // nobody waits any more
}

BOOST_AUTO_TEST_CASE(a_child_that_was_forked_meanwhile_holds_nobody_up) {
    const auto file = path + "/config.json";
    auto held = held_file::create(file, 0600, 1min);
    BOOST_REQUIRE(held.has_value());
    const pid_t child = ::fork(); // it has a copy of the descriptor
    if (child == 0) {
        for (;;) {
            ::pause();
        }
    }
    BOOST_TEST(held->fill("{}").has_value());
    const core::unique_fd at_once(::open(file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    BOOST_TEST(at_once.get() >= 0); // with the lease it would be EWOULDBLOCK
}

BOOST_AUTO_TEST_CASE(who_waits_goes_on_without_its_holder) {
    const auto file = path + "/config.json";
    std::optional<held_file> held = held_file::create(file, 0600, 1min).value();
    std::string seen = "nothing yet";
    std::thread reader([&] { seen = content_of(file); });
    BOOST_TEST(is_waited_for(file));
    held.reset();
    reader.join();
    BOOST_TEST(seen.empty());
}

BOOST_AUTO_TEST_CASE(its_patience_ends) {
    const auto file = path + "/config.json";
    BOOST_TEST(!held_file::create(file, 0600, 0ms)->holds());
}

BOOST_AUTO_TEST_CASE(it_must_be_new) {
    const auto file = path + "/config.json";
    BOOST_REQUIRE(held_file::create(file, 0600, 1min)->fill("{}").has_value());
    BOOST_TEST(held_file::create(file, 0600, 1min).has_error());
    BOOST_TEST(held_file::create(path + "/missing/config.json", 0600, 1min).has_error());
    BOOST_TEST(content_of(file) == "{}");
}

BOOST_AUTO_TEST_SUITE_END()
