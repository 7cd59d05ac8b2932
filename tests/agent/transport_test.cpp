// The agent on its standard streams and dialling out. (Its usual way, a listening socket, is what all other
// tests use.)

#include "protocol/handshake.hpp"

#include <boost/test/unit_test.hpp>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>

namespace {

namespace protocol = sandboxd::protocol;

/// Runs the agent; `prepare` runs in the child before the exec.
template <class Prepare>
pid_t spawn(std::vector<std::string> arguments, Prepare prepare) {
    const std::string program = SANDBOXD_BINARY_DIR "/sandboxd-agent";
    arguments.insert(arguments.begin(), {program, "serve"});
    std::vector<char*> argv;
    for (auto& one : arguments) {
        argv.push_back(one.data());
    }
    argv.push_back(nullptr);
    const pid_t pid = fork();
    if (pid == 0) {
        prepare();
        execv(program.c_str(), argv.data());
        _exit(97);
    }
    return pid;
}

void finish(pid_t pid) {
    kill(pid, SIGTERM);
    int status = -1;
    BOOST_TEST(waitpid(pid, &status, 0) == pid);
    BOOST_TEST(status == 0);
}

void limit_waiting(int fd) {
    const timeval limit{.tv_sec = 60, .tv_usec = 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
}

void put(int fd, const std::string& bytes) {
    BOOST_REQUIRE(::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()));
}

/// Says hello, runs `echo` over the channel and returns what it printed.
std::string echo_over(int fd, char mark, std::uint32_t stream) {
    protocol::hello message;
    message.nonce.fill(mark);
    std::string out;
    protocol::append_hello(out, message);
    put(fd, out);
    protocol::welcome_finder finder(message.nonce);
    protocol::welcome found;
    char buffer[4096];
    for (bool done = false; !done;) {
        const auto count = recv(fd, buffer, sizeof buffer, 0);
        BOOST_REQUIRE(count > 0);
        done = finder.feed({buffer, static_cast<std::size_t>(count)}, found);
    }
    out.clear();
    protocol::frame_writer(out, protocol::frame_type::start, stream)
        .bytes(protocol::tag::argument, "echo")
        .bytes(protocol::tag::argument, std::string(1, mark));
    put(fd, out);
    protocol::frame_parser parser(protocol::sender::agent);
    std::string bytes(finder.rest());
    std::string printed;
    for (;;) {
        parser.feed(bytes);
        protocol::frame_view frame;
        while (parser.next(frame) == protocol::parse_status::ok) {
            if (frame.header.type == protocol::frame_type::data && frame.header.stream == stream) {
                printed += frame.payload;
            } else if (frame.header.type == protocol::frame_type::end && frame.header.stream == stream) {
                return printed;
            }
        }
        bytes.resize(4096);
        const auto count = recv(fd, bytes.data(), bytes.size(), 0);
        BOOST_REQUIRE(count > 0);
        bytes.resize(static_cast<std::size_t>(count));
    }
}

BOOST_AUTO_TEST_SUITE(agent_transports)

BOOST_AUTO_TEST_CASE(standard_streams_outlive_whoever_was_attached) {
    int ends[2];
    BOOST_REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    limit_waiting(ends[0]);
    const pid_t pid = spawn({"--stdio"}, [&] {
        dup2(ends[1], 0);
        dup2(ends[1], 1);
    });
    close(ends[1]);
    BOOST_TEST(echo_over(ends[0], 'a', 1) == "a\n");
    BOOST_TEST(echo_over(ends[0], 'b', 2) == "b\n"); // another host on the same stream
    std::string cut;
    protocol::append_data(cut, 9, protocol::channel::in, std::string(60'000, 'x'));
    put(ends[0], cut.substr(0, 1'000)); // it left in the middle of a frame
    BOOST_TEST(echo_over(ends[0], 'c', 3) == "c\n");
    put(ends[0], "this is no frame at all, but something typed at a terminal\n");
    BOOST_TEST(echo_over(ends[0], 'd', 4) == "d\n");
    finish(pid);
    close(ends[0]);
}

BOOST_AUTO_TEST_CASE(a_dialled_channel_is_dialled_again_when_cut) {
    const auto folder =
        std::filesystem::temp_directory_path() / ("sandboxd-dial-" + std::to_string(getpid()));
    std::filesystem::create_directory(folder);
    const auto path = (folder / "s").string();
    const pid_t pid = spawn({"--dial", path}, [] {}); // nobody listens yet
    usleep(100'000);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::snprintf(address.sun_path, sizeof address.sun_path, "%s", path.c_str());
    const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    limit_waiting(listener);
    BOOST_REQUIRE(bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    BOOST_REQUIRE(listen(listener, 4) == 0);
    for (const char mark : {'a', 'b', 'c'}) {
        const int channel = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
        BOOST_REQUIRE(channel >= 0);
        limit_waiting(channel);
        BOOST_TEST(echo_over(channel, mark, static_cast<std::uint32_t>(mark)) == std::string(1, mark) + "\n");
        close(channel);
    }
    finish(pid);
    close(listener);
    std::filesystem::remove_all(folder);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
