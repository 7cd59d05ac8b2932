#include "agent_client.hpp"

#include <boost/test/unit_test.hpp>

#include <csignal>

namespace {

using namespace sandboxd::agent::test;
namespace protocol = sandboxd::protocol;
using protocol::end_cause;
using protocol::failure_kind;
using protocol::start_mode;

struct fixture {
    agent_process agent;
    client host{agent};

    outcome shell(const std::string& text) { return host.run(start::script(text)); }

    void refused(const start& command, failure_kind kind, std::uint32_t code, const std::string& text) {
        const auto end = host.run(command);
        BOOST_TEST((end.cause == end_cause::never_started));
        BOOST_TEST((end.failure == kind));
        BOOST_TEST(end.exit_code.value() == code);
        BOOST_TEST(end.text == text);
        BOOST_TEST(end.out.empty());
        BOOST_TEST(!end.pid);
    }
};

BOOST_FIXTURE_TEST_SUITE(agent_commands, fixture)

BOOST_AUTO_TEST_CASE(exit_codes_and_signals_are_told_as_they_are) {
    const auto success = host.run(start({"true"}));
    BOOST_TEST((success.cause == end_cause::exited));
    BOOST_TEST(success.exit_code.value() == 0U);
    BOOST_TEST(success.pid.value() > 0U);
    for (const std::uint32_t code : {1U, 3U, 124U, 127U, 137U, 255U}) {
        const auto end = shell("exit " + std::to_string(code));
        BOOST_TEST((end.cause == end_cause::exited));
        BOOST_TEST(end.exit_code.value() == code);
        BOOST_TEST(!end.exit_signal);
    }
    const auto killed = shell("kill -9 $$");
    BOOST_TEST((killed.cause == end_cause::exited));
    BOOST_TEST(killed.exit_signal.value() == 9U);
    BOOST_TEST(!killed.exit_code);
}

BOOST_AUTO_TEST_CASE(merged_output_keeps_its_order) {
    for (int i = 0; i < 200; ++i) {
        const auto end = shell("echo 1; echo 2 >&2; echo 3");
        BOOST_REQUIRE(end.out == "1\n2\n3\n");
        BOOST_REQUIRE(end.err.empty());
    }
}

BOOST_AUTO_TEST_CASE(separate_streams_stay_apart) {
    const auto end = host.run(
        start::script("echo out; echo err >&2; printf 'a\\0b\\r\\033[31m\\376'").mode(start_mode::separate));
    BOOST_TEST(end.out == std::string("out\na\0b\r\033[31m\376", 14));
    BOOST_TEST(end.err == "err\n");
    BOOST_TEST(end.out_total == 14U);
    BOOST_TEST(end.err_total == 4U);
}

BOOST_AUTO_TEST_CASE(arguments_are_literal) {
    const auto end = host.run(start({"printf", "%s|", "--x y", "$HOME", "*", "", "'\"`;\n"}));
    BOOST_TEST(end.out == "--x y|$HOME|*||'\"`;\n|");
}

BOOST_AUTO_TEST_CASE(what_cannot_run_is_said_in_words) {
    refused(start({"no-such-program"}), failure_kind::not_found, 127, "no-such-program: not found");
    refused(start({"/no/such/file"}), failure_kind::not_found, 127,
            "/no/such/file: No such file or directory");
    refused(start({""}), failure_kind::not_found, 127, ": not found");
    refused(start({"/etc"}), failure_kind::not_executable, 126, "/etc: Is a directory");
    refused(start({"/etc/passwd"}), failure_kind::not_executable, 126, "/etc/passwd: Permission denied");
    refused(start({}), failure_kind::invalid, 126, "there is no command");
    refused(start({"pwd"}).directory("/no/such/place"), failure_kind::directory, 126,
            "/no/such/place: the working directory can't be entered: No such file or directory");
    refused(start({"true"}).variable("=x"), failure_kind::invalid, 126,
            "an environment variable has no name");
    refused(start({"true", std::string("a\0b", 3)}), failure_kind::invalid, 126,
            "an argument, variable, directory or script holds a NUL byte");
    refused(start({"true", std::string(200'000, 'x')}), failure_kind::os, 126,
            "the arguments and the environment are too long together, or one of them is above 128 KiB");
    refused(start::script("true").variable("PATH=/no/such/folder"), failure_kind::not_found, 127,
            "sh: not found: there is no shell in this sandbox");
    BOOST_TEST(host.run(start({"true"})).exit_code.value() == 0U);
}

BOOST_AUTO_TEST_CASE(the_environment_is_the_agents_and_the_starts_on_top) {
    agent_process other({}, {"BASE=from the agent", "PATH=/usr/bin:/bin"});
    client peer(other);
    const auto end = peer.run(start::script("printf '%s|' \"$BASE\" \"$ODD\" \"$TWICE\"")
                                  .variable("ODD=x;touch $(id)\n=\xff'")
                                  .variable("TWICE=1")
                                  .variable("TWICE=2"));
    BOOST_TEST(end.out == "from the agent|x;touch $(id)\n=\xff'|2|");
    BOOST_TEST(peer.run(start::script("echo $BASE").variable("BASE=mine")).out == "mine\n");
}

BOOST_AUTO_TEST_CASE(the_program_is_looked_for_along_the_commands_own_path) {
    const auto end = host.run(start({"env"}).variable("PATH=/no/such:/usr/bin:/bin"));
    BOOST_TEST(end.exit_code.value() == 0U);
    BOOST_TEST(end.out.find("PATH=/no/such:/usr/bin:/bin\n") != std::string::npos);
    BOOST_TEST(host.run(start({"sh", "-c", "pwd"}).directory("/usr")).out == "/usr\n");
    BOOST_TEST(host.run(start({"./sh", "-c", "echo $0"}).directory("/bin")).out == "./sh\n");
}

BOOST_AUTO_TEST_CASE(stdin_is_at_its_end_unless_opened) {
    BOOST_TEST(host.run(start({"cat"})).out.empty());
    BOOST_TEST(shell("read a; echo $?").out == "1\n");
    BOOST_TEST(shell("grep x; echo $?").out == "1\n");
}

BOOST_AUTO_TEST_CASE(opened_stdin_carries_bytes_and_its_end) {
    const auto stream = host.begin(start({"cat"}).open_stdin());
    host.write(stream, std::string("a\0b\n", 4));
    BOOST_REQUIRE(host.pump([&] { return host.at(stream).out.size() == 4; }));
    host.write(stream, "end");
    host.end_input(stream);
    const auto end = host.finish(stream);
    BOOST_TEST(end.out == std::string("a\0b\nend", 7));
    BOOST_TEST(end.exit_code.value() == 0U);
}

BOOST_AUTO_TEST_CASE(stdin_is_acknowledged_as_it_is_read) {
    const auto stream = host.begin(start::script("sleep 0.2; wc -c").open_stdin());
    std::uint64_t sent = 0;
    for (int i = 0; i < 40; ++i) {
        BOOST_REQUIRE(
            host.pump([&] { return sent + 32'768 <= host.at(stream).stdin_credit + protocol::window; }));
        host.write(stream, std::string(32'768, 'x'));
        sent += 32'768;
    }
    host.end_input(stream);
    const auto end = host.finish(stream);
    BOOST_TEST(std::stoul(end.out) == sent);
}

BOOST_AUTO_TEST_CASE(closed_standard_descriptors_do_not_end_a_command) {
    const auto end = shell("exec 0<&- 1>&- 2>&-; sleep 0.3; exit 7");
    BOOST_TEST(end.exit_code.value() == 7U);
    BOOST_TEST(end.duration_us >= 300'000U);
}

BOOST_AUTO_TEST_CASE(scripts_of_any_length_run_as_with_the_c_option) {
    for (const std::size_t padding : {0U, 131'000U, 131'072U, 200'000U, 3'000'000U}) {
        auto command = start::script("#" + std::string(padding, 'x') +
                                     "\nread a; echo \"$? $0 $#\"; exec /bin/ls /proc/self/fd");
        const auto end = host.run(command);
        BOOST_TEST(end.out == "1 sh 0\n0\n1\n2\n3\n", "padding " << padding);
        BOOST_TEST(end.exit_code.value() == 0U);
    }
    BOOST_TEST(shell(std::string(150'000, '\n') + "exit 9").exit_code.value() == 9U);
}

// 64 KiB is what clients write files by, 72 KiB what goes to a supervisor in one packet.
BOOST_AUTO_TEST_CASE(arguments_of_any_length_arrive_whole) {
    for (std::size_t size = 60 * 1024; size < 131'000; size += 4'093) {
        const auto word = std::string(size, 'w') + "ez";
        const auto end =
            host.run(start({"/bin/sh", "-c", "echo ${#1}; printf %s \"$1\" | tail -c 3", "sh", word}));
        BOOST_TEST(end.out == std::to_string(word.size()) + "\nwez");
    }
}

BOOST_AUTO_TEST_CASE(a_long_start_is_not_held_while_its_command_runs) {
    const std::string script = "; while read name kib unit; do [ $name = RssAnon: ] && echo $kib; done "
                               "</proc/$PPID/status #";
    int small = 0;
    int large = 0;
    for (const std::string pause :
         {"sleep 0.1", "sleep 1", "sleep 10"}) { // until the supervisor has had its turn
        small = std::stoi(shell(pause + script).out);
        large = std::stoi(shell(pause + script + std::string(66'000, 'x')).out);
        if (large - small < 32) {
            break;
        }
    }
    BOOST_TEST(large - small < 32, small << " KiB, then " << large);
}

BOOST_AUTO_TEST_CASE(a_command_gets_a_group_clean_signals_and_no_descriptors) {
    const auto end = shell("exec /bin/cat /proc/self/status /proc/self/stat");
    BOOST_TEST(end.out.find("SigBlk:\t0000000000000000\n") != std::string::npos);
    BOOST_TEST(end.out.find("SigIgn:\t0000000000000000\n") != std::string::npos);
    BOOST_TEST(end.out.find("Umask:\t0022\n") != std::string::npos);
    // State, parent, group, session, no terminal: the session is that of its supervisor, the parent.
    const auto stat = end.out.substr(end.out.rfind(") ") + 4);
    const auto parent = stat.substr(0, stat.find(' '));
    const auto pid = std::to_string(end.pid.value());
    BOOST_TEST(stat.starts_with(parent + " " + pid + " " + parent + " 0 -1 "));
    BOOST_TEST(shell("exec /bin/ls /proc/self/fd").out == "0\n1\n2\n3\n");
}

BOOST_AUTO_TEST_CASE(another_user_gets_its_groups_and_home) {
    if (geteuid() != 0) {
        return;
    }
    const auto as = [](std::uint32_t user) {
        return [user](protocol::frame_writer& frame) { frame.u32(protocol::tag::user_id, user); };
    };
    BOOST_TEST(host.run(start::script("id -u; id -g; id -G").with(as(65'534))).out ==
               "65534\n65534\n65534\n");
    BOOST_TEST(host.run(start::script("id -u; id -g; id -G").with(as(4'242))).out == "4242\n0\n0\n");
    const auto both = start::script("id -u; id -g").with(as(4'242)).with([](protocol::frame_writer& frame) {
        frame.u32(protocol::tag::group_id, 77);
    });
    BOOST_TEST(host.run(both).out == "4242\n77\n");
    BOOST_TEST(host.run(start::script("echo $HOME").with(as(4'242)).variable("HOME=/mine")).out == "/mine\n");
    refused(start({"pwd"}).with(as(65'534)).directory("/root"), failure_kind::directory, 126,
            "/root: the working directory can't be entered: Permission denied");
}

BOOST_AUTO_TEST_CASE(unknown_file_operations_are_refused) {
    const auto end = host.run(
        start({}).with([](protocol::frame_writer& frame) { frame.u16(protocol::tag::operation, 999); }));
    BOOST_TEST((end.cause == end_cause::never_started));
    BOOST_TEST((end.failure == failure_kind::unsupported));
}

BOOST_AUTO_TEST_CASE(a_hundred_commands_at_once) {
    std::vector<std::uint32_t> streams;
    for (std::uint32_t i = 0; i < 100; ++i) {
        streams.push_back(host.begin(
            start::script("sleep 0.2; echo " + std::to_string(i) + "; exit " + std::to_string(i))));
    }
    for (std::uint32_t i = 0; i < 100; ++i) {
        const auto end = host.finish(streams[i]);
        BOOST_TEST(end.out == std::to_string(i) + "\n");
        BOOST_TEST(end.exit_code.value() == i);
    }
}

BOOST_AUTO_TEST_CASE(a_signal_right_behind_the_start_is_not_lost) {
    for (const auto* text : {"sleep 300", "exec sleep 300"}) {
        for (int i = 0; i < 20; ++i) {
            const auto stream = host.begin(start::script(text));
            std::string order;
            protocol::append_signal(order, stream, SIGKILL);
            host.send(order);
            const auto end = host.finish(stream);
            BOOST_TEST((end.cause == end_cause::exited));
            BOOST_TEST(end.exit_signal.value() == 9U);
        }
    }
    BOOST_TEST(agent.wait_for_commands(0));
}

BOOST_AUTO_TEST_CASE(signals_reach_the_process_group) {
    const auto stream =
        host.begin(start::script("trap 'echo got; exit 5' USR1; echo up; while :; do sleep 0.05; done"));
    BOOST_REQUIRE(host.pump([&] { return host.at(stream).out == "up\n"; }));
    std::string order;
    protocol::append_signal(order, stream, SIGUSR1);
    host.send(order);
    const auto end = host.finish(stream);
    BOOST_TEST((end.cause == end_cause::exited));
    BOOST_TEST(end.out.substr(end.out.size() - 4) == "got\n");
    BOOST_TEST(end.exit_code.value() == 5U);
}

BOOST_AUTO_TEST_CASE(the_entrypoint_runs_once_and_its_end_ends_nothing) {
    agent_process other({"--entrypoint", "sh", "-c", "sleep 0.1; exit 3"});
    client peer(other);
    BOOST_TEST(other.wait_for_commands(0));
    BOOST_TEST(peer.run(start({"true"})).exit_code.value() == 0U);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
