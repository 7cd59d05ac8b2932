// The floor: what the same work costs without a service. Spawns `sh -c true` with pipes for its output, reads
// them to the end and waits, again and again, in some threads. Runs inside the sandbox; static, so that any
// image will do.
//
//   floor CALLERS SECONDS          prints the same object as load
//   floor --scripts FILE           runs each command of the file once, one after the other, and prints
//                                  {"count":…,"seconds":…}; a command is the number of its words and the
//                                  words, each ended by a zero byte
//   floor --write FILE SECONDS     writes 4 KiB to a new file and renames it over FILE, again and again
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

extern char** environ;

namespace {

using steady = std::chrono::steady_clock;

// Runs the command with pipes for its output; whether it ended with 0.
bool run(const char* program, char* const* argv) {
    int out[2];
    if (::pipe2(out, O_CLOEXEC) != 0) {
        return false;
    }
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    posix_spawn_file_actions_adddup2(&actions, out[1], 2);
    pid_t pid = 0;
    const int failed = ::posix_spawnp(&pid, program, &actions, nullptr, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    ::close(out[1]);
    char buffer[4096];
    while (::read(out[0], buffer, sizeof buffer) > 0) {
    }
    ::close(out[0]);
    int status = 0;
    return failed == 0 && ::waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool spawn_once() {
    char sh[] = "sh";
    char flag[] = "-c";
    char command[] = "true";
    char* argv[] = {sh, flag, command, nullptr};
    return run("/bin/sh", argv);
}

std::vector<std::vector<char*>> commands_of(std::string& text) {
    std::vector<std::vector<char*>> commands;
    char* at = text.data();
    char* const end = at + text.size();
    while (at < end) {
        auto& words = commands.emplace_back();
        auto left = std::strtoul(at, nullptr, 10);
        for (at += std::strlen(at) + 1; left > 0 && at < end; --left, at += std::strlen(at) + 1) {
            words.push_back(at);
        }
        words.push_back(nullptr);
    }
    return commands;
}

int run_scripts(const char* file) {
    std::ifstream in(file, std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(in), {}};
    const auto commands = commands_of(text);
    const auto begin = steady::now();
    for (const auto& words : commands) {
        if (!run(words[0], words.data())) {
            std::fprintf(stderr, "floor: a command failed\n");
            return 1;
        }
    }
    const std::chrono::duration<double> spent = steady::now() - begin;
    std::printf("{\"count\":%zu,\"seconds\":%.6f}\n", commands.size(), spent.count());
    return 0;
}

bool write_once(const std::string& target) {
    static const std::string content(4096, 'x');
    const auto temporary = target + ".new";
    const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    const bool written =
        fd >= 0 && ::write(fd, content.data(), content.size()) == static_cast<ssize_t>(content.size());
    ::close(fd);
    return written && ::rename(temporary.c_str(), target.c_str()) == 0;
}

void print(std::vector<std::uint32_t>& all, double seconds) {
    std::sort(all.begin(), all.end());
    std::printf("{\"count\":%zu,\"per_second\":%.1f,\"p50_us\":%u,\"p99_us\":%u,\"max_us\":%u}\n", all.size(),
                static_cast<double>(all.size()) / seconds, all[all.size() / 2], all[all.size() * 99 / 100],
                all.back());
}

int run_writes(const char* file, double seconds) {
    std::vector<std::uint32_t> all;
    const auto begin = steady::now();
    const auto until =
        begin + std::chrono::duration_cast<steady::duration>(std::chrono::duration<double>(seconds));
    for (auto now = begin; now < until;) {
        if (!write_once(file)) {
            std::fprintf(stderr, "floor: %s can't be written\n", file);
            return 1;
        }
        const auto then = now;
        now = steady::now();
        all.push_back(static_cast<std::uint32_t>(
            std::chrono::duration_cast<std::chrono::microseconds>(now - then).count()));
    }
    const std::chrono::duration<double> spent = steady::now() - begin;
    print(all, spent.count());
    return 0;
}

} // namespace

int main(int argc, char** argv) {
    if (argc == 3 && std::string_view(argv[1]) == "--scripts") {
        return run_scripts(argv[2]);
    }
    if (argc == 4 && std::string_view(argv[1]) == "--write") {
        return run_writes(argv[2], std::atof(argv[3]));
    }
    if (argc != 3) {
        std::fprintf(stderr, "usage: floor CALLERS SECONDS | --scripts FILE | --write FILE SECONDS\n");
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
    print(all, spent.count());
    return 0;
}
