// File operations of the shipped agent, where another user or the agent's own processes matter. What they
// answer otherwise is tested through a sandbox (tests/sandbox/agent_files.cpp).

#include "agent_client.hpp"
#include "protocol/files.hpp"

#include <boost/test/unit_test.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

namespace {

using namespace sandboxd;
using namespace sandboxd::agent::test;
using namespace std::chrono_literals;
using protocol::end_cause;
using protocol::file_operation;
using protocol::frame_writer;
using protocol::tag;
namespace fs = std::filesystem;

constexpr uid_t nobody = 65'534;

start operation(file_operation which, const std::string& path) {
    auto out = start({});
    out.with([=](frame_writer& one) {
        one.u16(tag::operation, static_cast<std::uint16_t>(which)).bytes(tag::path, path);
    });
    return out.timeout(20'000);
}

start write_of(const std::string& path, const std::string& content) {
    return operation(file_operation::write, path).with([=](frame_writer& one) {
        one.bytes(tag::content, content);
    });
}

start read_of(const std::string& path) {
    return operation(file_operation::read, path).with([](frame_writer& one) {
        one.u64(tag::length, 1'000'000);
    });
}

std::string bytes_of(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

struct directory {
    directory() {
        std::string name = (fs::temp_directory_path() / "agent-files-XXXXXX").string();
        BOOST_REQUIRE(mkdtemp(name.data()) != nullptr);
        root = name;
        BOOST_REQUIRE(chmod(name.c_str(), 0755) == 0);
    }
    ~directory() { fs::remove_all(root); }

    fs::path put(const std::string& name, const std::string& bytes, mode_t mode) const {
        const auto path = root / name;
        std::ofstream(path, std::ios::binary) << bytes;
        BOOST_REQUIRE(chmod(path.c_str(), mode) == 0);
        return path;
    }
    /// Gives a file to the user that agent_process::owner::nobody is; without root that is this one anyway.
    static void give(const fs::path& path) {
        BOOST_REQUIRE(geteuid() != 0 || chown(path.c_str(), nobody, nobody) == 0);
    }
    fs::path root;
};

struct stat status_of(const fs::path& path) {
    struct stat out{};
    BOOST_REQUIRE(lstat(path.c_str(), &out) == 0);
    return out;
}

struct as_nobody : directory {
    agent_process agent{{}, {}, agent_process::owner::nobody};
    client host{agent};

    /// Only the right to the file, not to its directory.
    void close_directory() const {
        if (geteuid() != 0) {
            BOOST_REQUIRE(chmod(root.c_str(), 0555) == 0);
        }
    }
    ~as_nobody() { chmod(root.c_str(), 0755); }
};

BOOST_AUTO_TEST_SUITE(files)

BOOST_FIXTURE_TEST_CASE(what_cant_be_replaced_is_written_in_place, as_nobody) {
    const auto path = put("f", "old content", 0640);
    give(path);
    close_directory();
    const auto before = status_of(path);
    const auto end = host.run(write_of(path, "new"));
    BOOST_TEST(end.exit_code.value() == 0U);
    BOOST_TEST(bytes_of(path) == "new");
    BOOST_TEST(status_of(path).st_ino == before.st_ino);
    BOOST_TEST((status_of(path).st_mode & 07777) == 0640U);
    BOOST_TEST(host.run(write_of(path, std::string(30'000, 'x'))).exit_code.value() == 0U);
    BOOST_TEST(bytes_of(path) == std::string(30'000, 'x'));
    BOOST_TEST(host.run(write_of(root / "new", "x")).exit_code.value() == 1U);
    BOOST_TEST(!fs::exists(root / "new"));
    BOOST_TEST(std::distance(fs::directory_iterator(root), {}) == 1);
}

BOOST_FIXTURE_TEST_CASE(a_file_without_the_right_to_it_is_not_replaced, as_nobody) {
    give(root);
    const auto path = put("f", "old", 0444);
    give(path);
    const auto end = host.run(write_of(path, "new"));
    BOOST_TEST(end.exit_code.value() == 1U);
    BOOST_TEST((end.failure == protocol::failure_kind::os));
    BOOST_TEST(bytes_of(path) == "old");
    const auto secret = put("secret", "s", 0000);
    give(secret);
    BOOST_TEST(host.run(read_of(secret)).exit_code.value() == 1U);
    BOOST_TEST(host.run(read_of(path)).out == "old");
}

BOOST_FIXTURE_TEST_CASE(new_files_belong_to_the_command_s_user, directory) {
    if (geteuid() != 0) {
        return; // a user can't be changed
    }
    agent_process agent;
    client host(agent);
    const auto as_user = [](start one, std::uint32_t user) {
        return one.with([=](frame_writer& out) { out.u32(tag::user_id, user).u32(tag::group_id, 4'343); });
    };
    BOOST_REQUIRE(chmod(root.c_str(), 0777) == 0);
    BOOST_TEST(host.run(as_user(write_of(root / "a/b/f", "x"), 4'242)).exit_code.value() == 0U);
    for (const auto* const name : {"a", "a/b", "a/b/f"}) {
        BOOST_TEST(status_of(root / name).st_uid == 4'242U);
        BOOST_TEST(status_of(root / name).st_gid == 4'343U);
    }
    BOOST_TEST((status_of(root / "a/b").st_mode & 07777) == 0755U);
    BOOST_TEST((status_of(root / "a/b/f").st_mode & 07777) == 0644U);
    BOOST_TEST(host.run(as_user(write_of(root / "a/b/f", "y"), 4'444)).exit_code.value() == 1U);
    BOOST_TEST(bytes_of(root / "a/b/f") == "x");
    BOOST_TEST(host.run(write_of(root / "a/b/f", "root")).exit_code.value() == 0U);
    BOOST_TEST(bytes_of(root / "a/b/f") == "root");
    BOOST_TEST(status_of(root / "a/b/f").st_uid == 4'242U); // an existing file keeps its owner
}

BOOST_FIXTURE_TEST_CASE(helpers_are_used_again_and_few, directory) {
    agent_process agent;
    client host(agent);
    const auto path = put("f", "x", 0644);
    for (int i = 0; i < 100; ++i) {
        BOOST_REQUIRE(host.run(read_of(path)).out == "x");
    }
    BOOST_TEST(agent.supervisors().size() == 1U); // helpers are counted with them
    std::vector<std::uint32_t> streams;
    for (int i = 0; i < 300; ++i) {
        streams.push_back(host.begin(read_of(path)));
    }
    for (const auto one : streams) {
        BOOST_REQUIRE(host.finish(one).out == "x");
    }
    BOOST_TEST(agent.supervisors().size() <= 8U);
}

BOOST_FIXTURE_TEST_CASE(a_helper_that_is_killed_is_told_and_the_next_works, directory) {
    agent_process agent;
    client host(agent);
    const auto path = put("f", "old", 0644);
    const auto stream = host.begin(operation(file_operation::write, path).open_stdin());
    host.write(stream, "half of it");
    BOOST_REQUIRE(host.pump([&] { return host.at(stream).stdin_credit == 10; }));
    for (const auto pid : agent.supervisors()) {
        kill(pid, SIGKILL);
    }
    const auto end = host.finish(stream);
    BOOST_TEST((end.cause == end_cause::lost));
    BOOST_TEST(bytes_of(path) == "old");
    BOOST_TEST(host.run(read_of(path)).out == "old");
    for (const auto pid : agent.supervisors()) { // an idle one
        kill(pid, SIGKILL);
    }
    BOOST_TEST(agent.wait_until_reaped());
    BOOST_TEST(host.run(read_of(path)).out == "old");
}

BOOST_FIXTURE_TEST_CASE(an_operation_that_hangs_is_ended_at_its_time, directory) {
    agent_process agent;
    client host(agent);
    const auto path = put("f", "old", 0644);
    const auto waiting = host.begin(operation(file_operation::write, path).open_stdin().timeout(300));
    host.write(waiting, "never the end");
    const auto late = host.finish(waiting);
    BOOST_TEST(late.exit_code.value() == 1U); // by the helper itself
    const auto stuck = host.begin(operation(file_operation::write, path).open_stdin().timeout(3000));
    BOOST_REQUIRE(host.pump([&] { return agent.supervisors().size() == 1; }));
    host.write(stuck, "x");
    BOOST_REQUIRE(host.pump([&] { return host.at(stuck).stdin_credit == 1; }));
    for (const auto pid : agent.supervisors()) {
        kill(pid, SIGSTOP);
    }
    BOOST_TEST((host.finish(stuck).cause == end_cause::timed_out));
    BOOST_TEST(host.run(read_of(path)).out == "old");
}

BOOST_FIXTURE_TEST_CASE(a_write_nobody_waits_for_leaves_no_half_behind, directory) {
    agent_process agent;
    client host(agent);
    const auto path = put("f", "old", 0644);
    const auto stream = host.begin(operation(file_operation::write, path).open_stdin());
    host.write(stream, std::string(60'000, 'x'));
    BOOST_REQUIRE(host.pump([&] { return host.at(stream).stdin_credit == 60'000; }));
    host.order(protocol::frame_type::forget, stream);
    BOOST_REQUIRE(host.pump([&] { return host.at(stream).ended; }));
    BOOST_TEST(bytes_of(path) == "old");
    BOOST_TEST(std::distance(fs::directory_iterator(root), {}) == 1);
}

BOOST_FIXTURE_TEST_CASE(at_the_end_of_the_agent_no_half_stays_either, directory) {
    {
        agent_process agent;
        client host(agent);
        const auto stream = host.begin(operation(file_operation::write, root / "f").open_stdin());
        host.write(stream, std::string(60'000, 'x'));
        BOOST_REQUIRE(host.pump([&] { return host.at(stream).stdin_credit == 60'000; }));
    }
    BOOST_TEST(fs::is_empty(root));
}

BOOST_AUTO_TEST_CASE(malformed_operations_are_answered) {
    agent_process agent;
    client host(agent);
    const auto refused = [&](const start& one) {
        const auto end = host.run(one);
        return end.failure == protocol::failure_kind::invalid;
    };
    BOOST_TEST(refused(operation(file_operation::read, std::string("a\0b", 3))));
    BOOST_TEST(refused(
        operation(file_operation::read, "f").with([](frame_writer& one) { one.u32(tag::length, 1); })));
    BOOST_TEST(refused(operation(file_operation::read, std::string(70'000, 'x'))));
    const auto long_path = host.run(operation(file_operation::read, std::string(50'000, 'x')));
    BOOST_TEST(long_path.exit_code.value() == 1U);
    BOOST_TEST(
        (host.run(operation(file_operation::real_path, "f")).failure == protocol::failure_kind::unsupported));
    BOOST_TEST((host.run(operation(file_operation::read, "/")).failure == protocol::failure_kind::invalid));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
