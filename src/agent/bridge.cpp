#include "agent/bridge.hpp"

#include "agent/agent.hpp"
#include "agent/passwd.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace sandboxd::agent {

namespace {

constexpr char prefix[] = "sandboxd-agent-";
constexpr int backlog = 4;
constexpr int failed = 1;

struct bridge_address {
    sockaddr_un address{};
    socklen_t size = 0;
};

bridge_address address_of(const char* name) {
    bridge_address made;
    made.address.sun_family = AF_UNIX;
    char* const path = made.address.sun_path + 1; // abstract
    const int count = std::snprintf(path, sizeof made.address.sun_path - 1, "%s%s", prefix, name);
    const auto length = std::min(static_cast<std::size_t>(count), sizeof made.address.sun_path - 2);
    made.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
    return made;
}

descriptor connect_to(const char* name) {
    const auto where = address_of(name);
    descriptor one(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (one.valid() &&
        connect(one.get(), reinterpret_cast<const sockaddr*>(&where.address), where.size) != 0) {
        const int error = errno;
        one.reset();
        errno = error;
    }
    return one;
}

/// An agent that goes on when the relay ends: it has a session of its own and none of its descriptors.
void start_agent(descriptor listener) {
    const pid_t child = fork();
    if (child != 0) {
        return;
    }
    setsid();
    const descriptor null(open("/dev/null", O_RDWR | O_CLOEXEC));
    for (int fd = 0; fd < 3 && null.valid(); ++fd) {
        dup2(null.get(), fd);
    }
    agent_options options;
    options.how = agent_options::transport::relayed;
    options.bridge_fd = listener.get();
    _exit(agent(options).run());
}

/// False at the end of either side.
bool pass_on(int from, int to) {
    char bytes[65536];
    const auto count = read(from, bytes, sizeof bytes);
    if (count < 0 && errno == EINTR) {
        return true;
    }
    for (ssize_t at = 0; at < count;) {
        const auto put = write(to, bytes + at, static_cast<std::size_t>(count - at));
        if (put < 0 && errno != EINTR) {
            return false;
        }
        at += std::max<ssize_t>(put, 0);
    }
    return count > 0;
}

/// Each direction blocks by itself, so each has a process of its own: a host that reads slowly must not keep
/// its own questions from the agent.
int relay(int agent_socket) {
    const pid_t child = fork();
    if (child < 0) {
        return failed;
    }
    const int from = child == 0 ? 0 : agent_socket;
    const int to = child == 0 ? agent_socket : 1;
    while (pass_on(from, to)) {
    }
    if (child == 0) {
        shutdown(agent_socket, SHUT_RDWR); // the parent sees the end
        _exit(0);
    }
    kill(child, SIGKILL); // it may be waiting for the host
    return 0;
}

} // namespace

descriptor listen_for_bridge(const char* name) {
    const auto where = address_of(name);
    descriptor made(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!made.valid() ||
        bind(made.get(), reinterpret_cast<const sockaddr*>(&where.address), where.size) != 0 ||
        listen(made.get(), backlog) != 0) {
        return {};
    }
    return made;
}

bool comes_from_outside(int socket) {
    ucred who{};
    socklen_t size = sizeof who;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0 || who.pid <= 1) {
        return false;
    }
    char path[32];
    std::snprintf(path, sizeof path, "/proc/%d/stat", who.pid);
    const auto text = read_small_file(path);
    const auto name_end = text.rfind(')'); // a program's name may hold anything
    if (name_end == std::string::npos || name_end + 4 > text.size()) {
        return false;
    }
    return std::atoi(text.c_str() + name_end + 4) == 0; // "12 (name) S 0 ..."
}

int run_bridge(const char* name) {
    signal(SIGPIPE, SIG_IGN);
    auto to_agent = connect_to(name);
    if (!to_agent.valid() && errno == ECONNREFUSED) {
        auto listener = listen_for_bridge(name); // taken meanwhile: somebody else's agent is starting
        if (listener.valid()) {
            start_agent(std::move(listener));
        }
        to_agent = connect_to(name);
    }
    if (!to_agent.valid()) {
        std::fprintf(stderr, "sandboxd-agent: no agent answers: %s\n", std::strerror(errno));
        return failed;
    }
    return relay(to_agent.get());
}

} // namespace sandboxd::agent
