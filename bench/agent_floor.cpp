// What a command costs over the agent's socket, beside the same command started by a bare program, in turns
// in one run.
//
//     clang++-19 -std=c++20 -O2 -D_GNU_SOURCE -Isrc bench/agent_floor.cpp src/protocol/*.cpp -o agent_floor
//     ./agent_floor build/release/sandboxd-agent [COUNT] [PROGRAM ARG...]

#include "protocol/handshake.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace protocol = sandboxd::protocol;

namespace {

using clock_type = std::chrono::steady_clock;

[[noreturn]] void fail(const char* what) {
    std::perror(what);
    std::exit(1);
}

/// Starts the agent with a listening socket as descriptor 3 and connects to it.
int start_agent(const char* program, pid_t& pid) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "sandboxd-floor-%d", getpid());
    const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    if (bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
        listen(listener, 4) != 0) {
        fail("listen");
    }
    pid = fork();
    if (pid == 0) {
        dup2(listener, 3);
        execl(program, program, "serve", "--listen-fd", "3", nullptr);
        fail(program);
    }
    close(listener);
    const int channel = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(channel, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
        fail("connect");
    }
    return channel;
}

class client {
public:
    explicit client(int channel) : channel_(channel) {
        std::string out;
        protocol::append_hello(out, {});
        write_all(out);
        wait_for(protocol::frame_type::ready);
    }

    void run(char** argv) {
        std::string out;
        {
            protocol::frame_writer frame(out, protocol::frame_type::start, ++stream_);
            for (; *argv != nullptr; ++argv) {
                frame.bytes(protocol::tag::argument, *argv);
            }
        }
        write_all(out);
        wait_for(protocol::frame_type::end);
        out.clear();
        protocol::append_empty(out, protocol::frame_type::forget, stream_);
        write_all(out);
    }

private:
    void write_all(const std::string& out) {
        if (write(channel_, out.data(), out.size()) != static_cast<ssize_t>(out.size())) {
            fail("write");
        }
    }

    void wait_for(protocol::frame_type type) {
        protocol::frame_view frame;
        for (;;) {
            while (parser_.next(frame) == protocol::parse_status::ok) {
                if (frame.header.type == type) {
                    return;
                }
            }
            const auto count = read(channel_, buffer_, sizeof buffer_);
            if (count <= 0) {
                fail("read");
            }
            parser_.feed({buffer_, static_cast<std::size_t>(count)});
        }
    }

    int channel_;
    std::uint32_t stream_ = 0;
    protocol::frame_parser parser_{protocol::sender::agent};
    char buffer_[64 * 1024];
};

void spawn(char** argv) {
    pid_t pid = 0;
    int status = 0;
    if (posix_spawnp(&pid, argv[0], nullptr, nullptr, argv, environ) != 0 ||
        waitpid(pid, &status, 0) != pid) {
        fail("spawn");
    }
}

template <class Work>
void measure(std::vector<double>& into, Work work) {
    const auto from = clock_type::now();
    work();
    into.push_back(std::chrono::duration<double, std::micro>(clock_type::now() - from).count());
}

double part(std::vector<double>& of, double fraction) {
    std::sort(of.begin(), of.end());
    return of[static_cast<std::size_t>(static_cast<double>(of.size() - 1) * fraction)];
}

} // namespace

int main(int argc, char** argv) {
    if (argc < 2) {
        std::fputs("usage: agent_floor AGENT [COUNT] [PROGRAM ARG...]\n", stderr);
        return 2;
    }
    char shell[] = "sh";
    char option[] = "-c";
    char script[] = "true";
    char* usual[] = {shell, option, script, nullptr};
    char** const command = argc > 3 ? argv + 3 : usual;
    const int count = argc > 2 ? std::atoi(argv[2]) : 2000;
    pid_t agent = 0;
    client over(start_agent(argv[1], agent));
    std::vector<double> bare;
    std::vector<double> through;
    for (int i = 0; i < count; ++i) {
        measure(bare, [&] { spawn(command); });
        measure(through, [&] { over.run(command); });
    }
    std::printf("bare   p50 %.0f us  p99 %.0f us\nagent  p50 %.0f us  p99 %.0f us\nratio  %.2f\n",
                part(bare, 0.5), part(bare, 0.99), part(through, 0.5), part(through, 0.99),
                part(through, 0.5) / part(bare, 0.5));
    kill(agent, SIGTERM);
    waitpid(agent, nullptr, 0);
}
