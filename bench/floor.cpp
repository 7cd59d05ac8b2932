// The floor: what the same work costs without a service. Spawns `sh -c true` with pipes for its output, reads
// them to the end and waits, again and again, in some threads. Runs inside the sandbox; static, so that any
// image will do.
//
//   floor CALLERS SECONDS          prints the same object as load
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

extern char** environ;

namespace {

using steady = std::chrono::steady_clock;

bool spawn_once() {
    int out[2];
    if (::pipe2(out, O_CLOEXEC) != 0) {
        return false;
    }
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    posix_spawn_file_actions_adddup2(&actions, out[1], 2);
    char sh[] = "sh";
    char flag[] = "-c";
    char command[] = "true";
    char* argv[] = {sh, flag, command, nullptr};
    pid_t pid = 0;
    const int failed = ::posix_spawn(&pid, "/bin/sh", &actions, nullptr, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    ::close(out[1]);
    char buffer[4096];
    while (::read(out[0], buffer, sizeof buffer) > 0) {
    }
    ::close(out[0]);
    int status = 0;
    return failed == 0 && ::waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

} // namespace

int main(int argc, char** argv) {
    if (argc != 3) {
        std::fprintf(stderr, "usage: floor CALLERS SECONDS\n");
        return 2;
    }
    const auto callers = static_cast<std::size_t>(std::atoi(argv[1]));
    const std::chrono::duration<double> length(std::atof(argv[2]));
    std::vector<std::vector<std::uint32_t>> results(callers);
    std::vector<std::thread> threads;
    const auto begin = steady::now();
    const auto until = begin + std::chrono::duration_cast<steady::duration>(length);
    for (auto& result : results) {
        threads.emplace_back([&result, until] {
            for (auto now = steady::now(); now < until;) {
                if (!spawn_once()) {
                    result.clear();
                    return;
                }
                const auto then = now;
                now = steady::now();
                const auto spent = std::chrono::duration_cast<std::chrono::microseconds>(now - then);
                result.push_back(static_cast<std::uint32_t>(spent.count()));
            }
        });
    }
    std::vector<std::uint32_t> all;
    for (std::size_t i = 0; i < callers; ++i) {
        threads[i].join();
        if (results[i].empty()) {
            std::fprintf(stderr, "floor: a command did not start\n");
            return 1;
        }
        all.insert(all.end(), results[i].begin(), results[i].end());
    }
    const std::chrono::duration<double> spent = steady::now() - begin;
    std::sort(all.begin(), all.end());
    std::printf("{\"count\":%zu,\"per_second\":%.1f,\"p50_us\":%u,\"p99_us\":%u,\"max_us\":%u}\n", all.size(),
                static_cast<double>(all.size()) / spent.count(), all[all.size() / 2],
                all[all.size() * 99 / 100], all.back());
    return 0;
}
