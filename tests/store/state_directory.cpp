#include "store/state_directory.hpp"
#include "support/scratch.hpp"

#include <boost/test/unit_test.hpp>

#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace sandboxd;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_CASE(a_state_directory_keeps_what_it_made) {
    const test::scratch dir;
    const auto path = dir.file("deep/er/state");
    std::string uuid;
    std::array<unsigned char, 32> key{};
    {
        auto one = store::state_directory::open(path + "/", 0ms);
        BOOST_REQUIRE_MESSAGE(one.has_value(), (one ? "" : one.error().message));
        uuid = (*one)->uuid();
        key = (*one)->token_key();
        BOOST_TEST(uuid.size() == 36U);
        BOOST_TEST(!(*one)->backend().has_value());
        BOOST_TEST((*one)->remember_backend("oci").has_value());
        BOOST_TEST((*one)->database_path() == path + "/state.db");
        BOOST_TEST((*one)->give_to(::getuid(), ::getgid()).has_value());
        const auto second = store::state_directory::open(path, 50ms);
        BOOST_REQUIRE(second.has_error());
        BOOST_TEST(std::string(name_of(second.error().code)) == "unavailable");
        BOOST_TEST(second.error().message.find(path) != std::string::npos);
        BOOST_TEST(second.error().message.find("process " + std::to_string(::getpid())) != std::string::npos);
    }
    struct stat found{};
    BOOST_REQUIRE(::stat(path.c_str(), &found) == 0);
    BOOST_TEST((found.st_mode & 0777U) == 0700U);
    BOOST_REQUIRE(::stat((path + "/token.key").c_str(), &found) == 0);
    BOOST_TEST((found.st_mode & 0777U) == 0600U);
    BOOST_TEST(found.st_size == 32);
    const auto again = store::state_directory::open(path, 0ms);
    BOOST_REQUIRE(again.has_value());
    BOOST_TEST((*again)->uuid() == uuid);
    BOOST_TEST(((*again)->token_key() == key));
    BOOST_TEST((*again)->backend().value() == "oci");
}

BOOST_AUTO_TEST_CASE(the_lock_waits_for_a_forked_holder_and_not_for_programs_it_starts) {
    const test::scratch dir;
    const auto path = dir.file("state");
    auto one = store::state_directory::open(path, 0ms);
    BOOST_REQUIRE(one.has_value());
    // A launcher inherits the lock; it goes on a little after its service has died.
    int go_on[2] = {-1, -1};
    BOOST_REQUIRE(::pipe2(go_on, O_CLOEXEC) == 0);
    const pid_t launcher = ::fork();
    if (launcher == 0) {
        char word = 0;
        ::close(go_on[1]);
        (void)!::read(go_on[0], &word, 1);
        ::usleep(200'000);
        ::_exit(0);
    }
    ::close(go_on[0]);
    one->reset();
    BOOST_TEST(store::state_directory::open(path, 0ms).has_error());
    ::close(go_on[1]);
    BOOST_TEST(store::state_directory::open(path, 60s).has_value());
    int status = 0;
    BOOST_REQUIRE(::waitpid(launcher, &status, 0) == launcher);
    one = store::state_directory::open(path, 0ms);
    BOOST_REQUIRE(one.has_value());
    const pid_t program = ::fork();
    if (program == 0) {
        ::execl("/bin/sleep", "sleep", "600", nullptr);
        ::_exit(127);
    }
    one->reset();
    BOOST_TEST(store::state_directory::open(path, 60s).has_value());
    ::kill(program, SIGKILL);
    BOOST_REQUIRE(::waitpid(program, &status, 0) == program);
}

BOOST_AUTO_TEST_CASE(a_state_directory_that_can_not_be_trusted_is_refused) {
    const test::scratch dir;
    const auto path = dir.file("state");
    BOOST_REQUIRE(store::state_directory::open(path, 0ms).has_value());
    const auto refused = [&path](const std::string& word) {
        const auto one = store::state_directory::open(path, 0ms);
        BOOST_REQUIRE(one.has_error());
        BOOST_TEST(one.error().message.find(word) != std::string::npos, one.error().message);
    };
    const auto key = path + "/token.key";
    std::filesystem::permissions(key, std::filesystem::perms(0640));
    refused("chmod 0600");
    std::filesystem::permissions(key, std::filesystem::perms(0600));
    std::filesystem::resize_file(key, 31);
    refused("31 bytes instead of 32");
    std::filesystem::remove(key);
    std::filesystem::create_symlink("/dev/zero", key);
    refused("token.key");
    std::filesystem::remove(key);
    std::ofstream(path + "/uuid") << "nonsense\n";
    refused("UUID");
    std::filesystem::remove(path + "/uuid");
    std::filesystem::permissions(path, std::filesystem::perms(0777));
    refused("written by others");
    std::filesystem::permissions(path, std::filesystem::perms(0700));
    BOOST_TEST(store::state_directory::open(path, 0ms).has_value());
    BOOST_TEST(store::state_directory::open("relative", 0ms).has_error());
    std::ofstream(dir.file("file")) << "x";
    BOOST_TEST(store::state_directory::open(dir.file("file"), 0ms).has_error());
}
