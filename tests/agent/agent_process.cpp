#include "agent_client.hpp"

#include "agent/process_tree.hpp"

#include <boost/test/unit_test.hpp>

#include <fcntl.h>
#include <grp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstring>
#include <fstream>
#include <sstream>
#include <thread>

// The agent as a process: how it is started and ended, and what runs below it.

namespace sandboxd::agent::test {

namespace {

using namespace std::chrono_literals;
using clock_type = std::chrono::steady_clock;

constexpr auto patience = 60s; // for what takes a moment, on a machine that is busy with something else

sockaddr_un address_of(const std::string& name) {
    sockaddr_un out{};
    out.sun_family = AF_UNIX;
    std::memcpy(out.sun_path + 1, name.data(), name.size());
    return out;
}

bool eventually(const std::function<bool()>& done, std::chrono::milliseconds limit) {
    const auto until = clock_type::now() + limit;
    while (!done()) {
        if (clock_type::now() > until) {
            return false;
        }
        std::this_thread::sleep_for(2ms);
    }
    return true;
}

std::set<pid_t> running_agents;

/// Children of this test that are no agents: they came here as orphans. The ended ones are taken.
std::vector<pid_t> leftovers() {
    std::vector<pid_t> out;
    for (const auto& one : list_processes()) {
        const bool ours = one.parent == getpid() && !running_agents.contains(one.pid);
        if (ours && waitpid(one.pid, nullptr, WNOHANG) == 0) {
            out.push_back(one.pid);
        }
    }
    return out;
}

} // namespace

std::string read_proc(pid_t pid, const char* file) {
    std::ifstream in("/proc/" + std::to_string(pid) + "/" + file, std::ios::binary);
    std::ostringstream out;
    out << in.rdbuf();
    return out.str();
}

agent_process::agent_process(std::vector<std::string> more, std::vector<std::string> environment,
                             owner whose) {
    static std::atomic<int> counter{0};
    name_ = "sandboxd-agent-test-" + std::to_string(getpid()) + "-" + std::to_string(++counter);
    prctl(PR_SET_CHILD_SUBREAPER, 1); // whatever it leaves behind comes here and is seen
    const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const auto address = address_of(name_);
    BOOST_REQUIRE(bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    BOOST_REQUIRE(listen(listener, 8) == 0);
    const std::string program = SANDBOXD_BINARY_DIR "/sandboxd-agent";
    std::vector<std::string> arguments{program, "serve", "--listen-fd", "3"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    std::vector<char*> argv;
    for (auto& one : arguments) {
        argv.push_back(one.data());
    }
    argv.push_back(nullptr);
    for (char** one = environ; *one != nullptr; ++one) {
        environment.emplace_back(*one);
    }
    std::vector<char*> envp;
    for (auto& one : environment) {
        envp.push_back(one.data());
    }
    envp.push_back(nullptr);
    const bool change = whose == owner::nobody && geteuid() == 0;
    pid_ = fork();
    BOOST_REQUIRE(pid_ >= 0);
    if (pid_ == 0) {
        if (listener == 3) {
            fcntl(3, F_SETFD, 0);
        }
        dup2(listener, 3);
        if (change) {
            const int file = open(program.c_str(), O_PATH | O_CLOEXEC);
            if (setgroups(0, nullptr) == 0 && setgid(65'534) == 0 && setuid(65'534) == 0) {
                // By descriptor: that user may not be allowed to walk to the program.
                execveat(file, "", argv.data(), envp.data(), AT_EMPTY_PATH);
            }
            _exit(98);
        }
        execve(program.c_str(), argv.data(), envp.data());
        _exit(97);
    }
    close(listener);
    running_agents.insert(pid_);
}

agent_process::~agent_process() {
    kill(pid_, SIGTERM);
    int status = -1;
    const bool left = eventually([&] { return waitpid(pid_, &status, WNOHANG) == pid_; }, patience);
    BOOST_CHECK_MESSAGE(left, "the agent does not leave");
    BOOST_CHECK_MESSAGE(left && WIFEXITED(status) && WEXITSTATUS(status) == 0,
                        "the agent ended with " << status);
    if (!left) {
        kill(pid_, SIGKILL);
    }
    running_agents.erase(pid_);
    const bool clean = eventually([] { return leftovers().empty(); }, patience);
    BOOST_CHECK_MESSAGE(clean, "the agent leaves processes behind");
    for (const auto pid : leftovers()) {
        kill(pid, SIGKILL);
    }
}

int agent_process::connect() const {
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const auto address = address_of(name_);
    BOOST_REQUIRE(::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    return fd;
}

bool agent_process::alive() const {
    return waitpid(pid_, nullptr, WNOHANG) == 0;
}

std::vector<pid_t> agent_process::commands() const {
    std::vector<pid_t> out;
    for (const auto& one : descendants(list_processes(), pid_)) {
        if (one.state != 'Z' && read_proc(one.pid, "comm") != "sandboxd-agent\n") {
            out.push_back(one.pid);
        }
    }
    return out;
}

std::vector<pid_t> agent_process::supervisors() const {
    std::vector<pid_t> out;
    for (const auto& one : list_processes()) {
        if (one.parent == pid_ && one.state != 'Z' && read_proc(one.pid, "comm") == "sandboxd-agent\n") {
            out.push_back(one.pid);
        }
    }
    return out;
}

bool agent_process::wait_for_commands(std::size_t count) const {
    return eventually([&] { return commands().size() == count; }, patience);
}

bool agent_process::wait_until_reaped() const {
    return eventually(
        [this] {
            const auto all = descendants(list_processes(), pid_);
            return std::none_of(all.begin(), all.end(), [](const auto& one) { return one.state == 'Z'; });
        },
        patience);
}

} // namespace sandboxd::agent::test
