#include "lines.hpp"

#include "core/random.hpp"

#include <boost/test/unit_test.hpp>

#include <thread>

using namespace sandboxd;
using namespace sandboxd::client;
using namespace sandboxd::lines;
using namespace std::chrono_literals;

namespace sandboxd::lines {

std::string unique(const std::string& stem) {
    return stem + "-" + core::random_hex(6);
}

} // namespace sandboxd::lines

BOOST_AUTO_TEST_SUITE(g1)

BOOST_AUTO_TEST_CASE(k_8_1_046_047_start_twice_and_execute) {
    const own_sandbox sandbox;
    BOOST_TEST(sandbox->start().has_value());
    BOOST_TEST(sandbox->start().has_value());
    // Through one stream: the reference's two keep no order between them.
    const auto ran = sandbox->execute("exec 2>&1; echo out; echo err >&2; exit 3");
    BOOST_TEST(ran.output == "out\nerr\n");
    BOOST_TEST(ran.exit_code.value() == 3);
    BOOST_TEST(!ran.truncated);
}

BOOST_AUTO_TEST_CASE(k_8_1_048_049_050_files) {
    const own_sandbox sandbox;
    BOOST_TEST(sandbox->write("a.txt", "one\ntwo\n").path.value() == "/workspace/a.txt");
    BOOST_TEST(sandbox->read("a.txt") == "one\ntwo");
    const auto edited = sandbox->edit("a.txt", "two", "three");
    BOOST_TEST(edited.path.value() == "/workspace/a.txt");
    BOOST_TEST(!edited.error.has_value());
    BOOST_TEST(edited.occurrences.value() == 1U);
    BOOST_TEST(sandbox->read("a.txt") == "one\nthree");
    std::string every;
    for (int i = 0; i < 256; ++i) {
        every += static_cast<char>(i);
    }
    BOOST_TEST(!sandbox->write("bytes.bin", every).error.has_value());
    BOOST_TEST(sandbox->read_bytes("bytes.bin") == every);
    BOOST_TEST(sandbox->exists("a.txt"));
    BOOST_TEST(!sandbox->exists("nope.txt"));
}

BOOST_AUTO_TEST_CASE(k_8_1_051_052_076_077_searches) {
    const own_sandbox sandbox;
    BOOST_TEST(sandbox->write("notes.txt", "alpha\nbeta\n").path.has_value());
    BOOST_TEST(sandbox->write("pkg/a.py", "print('a')\n").path.has_value());
    const auto rows = sandbox->ls_info("/workspace");
    BOOST_TEST(rows.size() == 2U);
    for (const auto& row : rows) {
        BOOST_TEST(row.is_dir == (row.name == "pkg"));
    }
    const auto found = sandbox->glob_info("**/*.py", "/workspace");
    BOOST_TEST_REQUIRE(found.size() == 1U);
    BOOST_TEST(found[0].name == "a.py");
    const auto matches = sandbox->grep_raw("beta", "/workspace");
    BOOST_TEST_REQUIRE(matches.matches.size() == 1U);
    BOOST_TEST(matches.matches[0].line_number == 2U);
    BOOST_TEST(matches.matches[0].line == "beta");
    BOOST_TEST(sandbox->grep_raw("a", "/workspace", "*.txt", false).matches.size() == 2U);
    const auto failing = sandbox->grep_raw("\\(").error.value();
    BOOST_TEST(failing.starts_with("Error: "));
    BOOST_TEST(failing != "Error: could not search for '\\('");
}

BOOST_AUTO_TEST_CASE(k_8_1_053_054_055_alive_and_usage) {
    const own_sandbox sandbox;
    BOOST_TEST(!sandbox->is_alive());
    BOOST_TEST(!sandbox->resource_usage().has_value());
    BOOST_TEST(sandbox->start().has_value());
    BOOST_TEST(sandbox->is_alive());
    const auto usage = sandbox->resource_usage();
    BOOST_TEST_REQUIRE(usage.has_value());
    BOOST_TEST(usage->memory_bytes.value() > 0U);
    BOOST_TEST(usage->pids.value() >= 1U);
}

BOOST_AUTO_TEST_CASE(k_8_1_056_057_stop) {
    const own_sandbox sandbox;
    sandbox->stop();
    BOOST_TEST(sandbox->execute("echo x > a.txt").exit_code.value() == 0);
    const auto directory = root() / sandbox->session_id();
    BOOST_TEST(content_of(directory / "workspace/a.txt") == "x\n");
    sandbox->stop();
    BOOST_TEST(!sandbox->is_alive());
    BOOST_TEST(std::filesystem::exists(directory));
    BOOST_TEST(sandbox->start().has_value());
    sandbox->stop(true);
    BOOST_TEST(!std::filesystem::exists(directory));
}

BOOST_AUTO_TEST_CASE(k_8_1_059_a_forgotten_session_degrades) {
    const auto id = unique("forgotten");
    const own_sandbox sandbox({.session_id = id});
    BOOST_TEST(sandbox->start().has_value());
    const own_sandbox other({.session_id = id, .reuse = true});
    BOOST_TEST(other->start().has_value());
    other->stop();
    const auto ran = sandbox->execute("true");
    BOOST_TEST(ran.output == "Error: sandbox service unavailable");
    BOOST_TEST(ran.exit_code.value() == 1);
    BOOST_TEST(sandbox->read("x") == "Error: could not read 'x'");
    BOOST_TEST(sandbox->read_bytes("x").empty());
    BOOST_TEST(sandbox->write("x", "y").error.has_value());
    BOOST_TEST(sandbox->edit("x", "a", "b").error.has_value());
    BOOST_TEST(!sandbox->exists("x"));
    BOOST_TEST(sandbox->ls_info("x").empty());
    BOOST_TEST(sandbox->glob_info("x").empty());
    BOOST_TEST(sandbox->grep_raw("x").error.value() == "Error: could not search for 'x'");
    BOOST_TEST(!sandbox->is_alive());
    BOOST_TEST(!sandbox->resource_usage().has_value());
}

BOOST_AUTO_TEST_CASE(k_8_1_060_130_a_refused_open) {
    const own_sandbox sandbox({.runtime = "perl"});
    const auto started = sandbox->start();
    BOOST_TEST_REQUIRE(started.has_error());
    BOOST_TEST(started.error().status.value() == 400);
    BOOST_TEST(started.error().message.find("Unknown runtime") != std::string::npos);
    BOOST_TEST(sandbox->execute("true").output == "Error: sandbox service unavailable");
    BOOST_TEST(sandbox->ls_info("/").empty());
    const auto stranger = remote_sandbox::create(where(), {.token = "wrong"}).value().start();
    BOOST_TEST_REQUIRE(stranger.has_error());
    BOOST_TEST(stranger.error().status.value() == 401);
}

BOOST_AUTO_TEST_CASE(k_8_1_094_reuse_sees_the_first_ones_file) {
    const own_sandbox first;
    BOOST_TEST(first->write("shared.txt", "from the first\n").path.has_value());
    const own_sandbox second({.session_id = first->session_id(), .reuse = true});
    BOOST_TEST(second->read("shared.txt") == "from the first");
}

BOOST_AUTO_TEST_CASE(k_8_1_095_reuse_without_an_open_session_opens_one) {
    const own_sandbox sandbox({.session_id = unique("fresh"), .reuse = true});
    BOOST_TEST(!sandbox->is_alive());
    BOOST_TEST(sandbox->execute("echo new").output == "new\n");
    BOOST_TEST(sandbox->is_alive());
}

BOOST_AUTO_TEST_CASE(k_8_1_125_to_129_lazy) {
    const own_sandbox sandbox;
    BOOST_TEST(!sandbox->is_alive()); // opens nothing
    BOOST_TEST(sandbox->execute("echo a").output == "a\n");
    BOOST_TEST(sandbox->is_alive());
    BOOST_TEST(sandbox->execute("echo b").output == "b\n");
}

BOOST_AUTO_TEST_CASE(k_8_1_131_threads_open_one_session) {
    const own_sandbox sandbox;
    std::atomic<int> fine{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&] { fine += sandbox->execute("echo x").output == "x\n" ? 1 : 0; });
    }
    for (auto& one : threads) {
        one.join();
    }
    BOOST_TEST(fine == 4);
}

BOOST_AUTO_TEST_CASE(k_8_1_258_shared_connections_stay_open) {
    const auto shared = connections::create(where()).value();
    const auto sandbox = remote_sandbox::create(shared, {.token = token()}).value();
    BOOST_TEST(sandbox.start().has_value());
    sandbox.stop(true);
    BOOST_TEST(shared->idle() == 1U);
    BOOST_TEST(sandbox.start().has_value());
    BOOST_TEST(sandbox.is_alive());
    sandbox.stop(true);
}

// Where the service keeps no workspaces: SANDBOXD_BARE_URL.
BOOST_AUTO_TEST_CASE(k_8_1_259_a_start_after_a_stop_has_none_of_the_files) {
    auto bare = where();
    bare.url = from_environment("SANDBOXD_BARE_URL");
    const auto sandbox = remote_sandbox::create(bare, {.token = token()}).value();
    BOOST_TEST(sandbox.write("old.txt", "old").path.has_value());
    BOOST_TEST(sandbox.exists("old.txt"));
    sandbox.stop();
    BOOST_TEST(sandbox.start().has_value());
    BOOST_TEST(sandbox.is_alive());
    BOOST_TEST(!sandbox.exists("old.txt"));
    sandbox.stop();
}

BOOST_AUTO_TEST_CASE(k_8_1_280_the_ceiling_is_learned) {
    const own_sandbox sandbox;
    BOOST_TEST(sandbox->start().has_value());
    BOOST_TEST((sandbox->server_timeout() == 7s));
}

BOOST_AUTO_TEST_CASE(k_8_1_281_282_a_command_beyond_the_ceiling_ends) {
    const own_sandbox sandbox;
    const auto ran = sandbox->execute("sleep 600; echo the end"); // its caller waits for less
    BOOST_TEST((ran.exit_code.value() == 124 || ran.exit_code.value() == 1));
    BOOST_TEST(ran.output.find("the end") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(k_8_1_151_to_158_archive) {
    const auto id = unique("cold");
    const auto workspace = root() / id / "workspace";
    std::filesystem::create_directories(workspace / "src");
    const std::string png("\x89PNG\r\n\x1a\n\0\0\0\rIHDR\xff\xfe\0\1", 20);
    std::ofstream(workspace / "a.txt") << "one\n";
    std::ofstream(workspace / "p.png", std::ios::binary) << png;
    std::ofstream(workspace / "big.txt") << std::string(12U << 20U, 'x');
    const auto archive = workspace_archive::create(where(), {.token = token()}).value();
    std::string names;
    for (const auto& row : archive.ls(id).value()) {
        names += row.name + " ";
    }
    BOOST_TEST(names == "src a.txt big.txt p.png ");
    BOOST_TEST(archive.read(id, "a.txt").value() == "one");
    BOOST_TEST(archive.read_bytes(id, "p.png").value() == png);
    BOOST_TEST(archive.read_bytes(id, "a.txt").value() == "one\n");
    const auto refused = [](const auto& answer, int status, const char* part) {
        BOOST_TEST_REQUIRE(answer.has_error());
        BOOST_TEST(answer.error().status.value() == status);
        BOOST_TEST(answer.error().message.find(part) != std::string::npos);
    };
    refused(archive.read_bytes(id, "nope.txt"), 404, "nope.txt");
    refused(archive.read_bytes(id, "big.txt"), 400, "read limit");
    refused(archive.read_bytes(id, "../../../etc/passwd"), 400, "outside the workspace");
    refused(archive.ls("never-there"), 404, "");
    std::filesystem::remove_all(root() / id);
}

BOOST_AUTO_TEST_SUITE_END()
