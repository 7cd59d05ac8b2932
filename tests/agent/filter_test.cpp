// The system-call filter: its program, answered here as the kernel does it, and loaded in a process.

#include "agent/filter.hpp"
#include "agent/filter_program.hpp"

#include <boost/test/unit_test.hpp>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>
#include <string>

namespace sandboxd::agent {

namespace {

constexpr std::uint32_t amd64 = 0xC000003E;
constexpr std::uint32_t i386 = 0x40000003;
constexpr std::uint32_t arm64 = 0xC00000B7;
constexpr std::uint32_t arm = 0x40000028;

constexpr std::uint32_t allowed = SECCOMP_RET_ALLOW;
constexpr std::uint32_t refused = SECCOMP_RET_ERRNO | EPERM;
constexpr std::uint32_t unknown = SECCOMP_RET_ERRNO | ENOSYS;

struct answer {
    std::uint32_t what = 0;
    int steps = 0;
};

std::uint32_t load_word(const seccomp_data& data, std::uint32_t offset) {
    BOOST_REQUIRE(offset % 4 == 0 && offset + 4 <= sizeof data);
    std::uint32_t word = 0;
    std::memcpy(&word, reinterpret_cast<const char*>(&data) + offset, sizeof word);
    return word;
}

/// What the kernel does with the instructions that the filter is made of.
answer run(std::span<const sock_filter> code, const seccomp_data& data) {
    std::uint32_t accumulator = 0;
    answer out;
    for (std::size_t at = 0; at < code.size(); ++at) {
        const auto& one = code[at];
        ++out.steps;
        bool yes = false;
        switch (one.code) {
        case BPF_LD | BPF_W | BPF_ABS:
            accumulator = load_word(data, one.k);
            continue;
        case BPF_JMP | BPF_JA:
            at += one.k;
            continue;
        case BPF_RET | BPF_K:
            out.what = one.k;
            return out;
        case BPF_JMP | BPF_JEQ | BPF_K:
            yes = accumulator == one.k;
            break;
        case BPF_JMP | BPF_JGE | BPF_K:
            yes = accumulator >= one.k;
            break;
        case BPF_JMP | BPF_JSET | BPF_K:
            yes = (accumulator & one.k) != 0;
            break;
        default:
            BOOST_FAIL("instruction " << one.code);
        }
        at += yes ? one.jt : one.jf;
    }
    BOOST_FAIL("the program has no end");
    return out;
}

std::span<const sock_filter> code_for(std::uint32_t architecture) {
    return (architecture == arm64 || architecture == arm ? filter_for_arm64 : filter_for_amd64).code();
}

std::uint32_t ask(std::uint32_t architecture, std::uint32_t number, std::uint64_t argument = 0) {
    seccomp_data data{};
    data.nr = static_cast<int>(number);
    data.arch = architecture;
    data.args[0] = argument;
    return run(code_for(architecture), data).what;
}

/// "1-3 7" is 1, 2, 3 and 7.
std::set<std::uint32_t> numbers(const std::string& text) {
    std::istringstream words(text);
    std::set<std::uint32_t> out;
    for (std::string word; words >> word;) {
        const auto dash = word.find('-');
        const auto last = std::stoul(dash == std::string::npos ? word : word.substr(dash + 1));
        for (auto number = std::stoul(word); number <= last; ++number) {
            out.insert(static_cast<std::uint32_t>(number));
        }
    }
    return out;
}

struct way {
    std::uint32_t architecture;
    const char* allowed; ///< whatever the arguments
    std::uint32_t clone;
    std::uint32_t personality;
    std::uint32_t socket;
};

// What libseccomp 2.5.4 made of the same profile for the OCI runtimes, and mseal, which came after it.
const way ways[] = {
    {amd64,
     "0-40 42-55 57-102 104-133 137-138 140-152 154 157-162 186-211 213-226 228-235 240-245 247 "
     "251-255 257-271 273-277 280-297 299 301-302 305-307 309-311 314-319 322 324-334 424 434 436-437 "
     "439 441 444-449 451-456 462",
     56, 135, 41},
    {i386,
     "0-16 19-20 23-24 26-27 29-30 33 36-43 45-50 54-55 57 60-61 63-67 70-73 75-78 80-83 85 89-97 "
     "99-100 102 104-108 114 116-119 122-126 132-133 138-148 150-165 168 170-187 190-216 218-221 "
     "224-250 252 254-263 265-272 277-282 284 289-293 295-309 311-315 318-335 337 339-340 343-345 "
     "347-348 351-356 358 360-373 375-386 393-403 405-414 416-424 434 436-437 439 441 444-449 451-456 "
     "462",
     120, 136, 359},
    {arm64,
     "0-17 19-38 43-57 59 61-74 76-88 90-91 93-96 98-103 107-111 113-115 117-141 143-160 163-169 "
     "171-197 199-216 221-223 226-234 240 242-243 260-261 263 266-267 269-271 274-279 281 283-293 424 "
     "434 436-437 439 441 444-449 451-456 462",
     220, 92, 198},
    {arm,
     "0-6 8-12 14-16 19-20 23-24 26 29 33 36-43 45-47 49-50 54-55 57 60-61 63-67 70-73 75 77-78 80-81 "
     "83 85 91-97 99-100 104-108 114 116 118-119 122 124-126 132-133 138-148 150-165 168 170-187 "
     "190-217 219-221 224-248 250-253 256-261 263-270 274-280 282-308 312 314-318 322-336 338-342 "
     "345-346 348-363 365-366 368-369 372-374 376-377 380-385 387 389-399 403 405-414 416-424 434 "
     "436-437 439 441 444-446 448-449 451-456 462 983041-983042 983045",
     120, 136, 281},
};

/// Runs it in a process of its own behind the filter; true when it says so.
bool holds(const std::function<bool()>& check) {
    const pid_t pid = fork();
    if (pid == 0) {
        _exit(load_filter() == 0 && check() ? 0 : 1);
    }
    int status = -1;
    waitpid(pid, &status, 0);
    return status == 0;
}

/// -1 and the errno, as a call from behind the filter gives it.
bool fails(int expected, long number, long first = 0, long second = 0) {
    errno = 0;
    return syscall(number, first, second, 0L, 0L, 0L) == -1 && errno == expected;
}

/// The same over the door for 32-bit programs, where there is one.
[[maybe_unused]] long call_as_i386([[maybe_unused]] long number, [[maybe_unused]] long argument) {
    long out = -ENOSYS;
#if defined(__x86_64__)
    asm volatile("int $0x80"
                 : "=a"(out)
                 : "a"(number), "b"(argument), "c"(0L), "d"(0L), "S"(0L), "D"(0L)
                 : "memory");
#endif
    return static_cast<int>(out);
}

} // namespace

BOOST_AUTO_TEST_SUITE(agent_filter)

BOOST_AUTO_TEST_CASE(every_number_has_the_answer_of_the_engines_profile) {
    for (const auto& one : ways) {
        BOOST_TEST_CONTEXT(std::hex << one.architecture) {
            const auto expected = numbers(one.allowed);
            std::set<std::uint32_t> found;
            for (std::uint32_t number = 0; number < 2000; ++number) {
                if (number == one.clone || number == one.personality || number == one.socket) {
                    continue;
                }
                const auto what = ask(one.architecture, number);
                if (what == allowed) {
                    found.insert(number);
                } else {
                    BOOST_TEST(what == (number == 435 || number >= 457 ? unknown : refused), number);
                }
                BOOST_TEST(what == ask(one.architecture, number, UINT64_MAX), number);
            }
            for (std::uint32_t number = 983'000; number < 983'100; ++number) { // arm's own
                if (ask(one.architecture, number) == allowed) {
                    found.insert(number);
                }
            }
            BOOST_TEST(found == expected, boost::test_tools::per_element());
        }
    }
}

BOOST_AUTO_TEST_CASE(clone_makes_no_namespaces) {
    for (const auto& one : ways) {
        for (const std::uint64_t flags :
             {0x0ULL, 0x11ULL, 0x1200011ULL, 0x3D0F00ULL, 0x80000000ULL, 0xFFULL}) {
            BOOST_TEST(ask(one.architecture, one.clone, flags) == allowed, flags);
        }
        for (int bit = 0; bit < 32; ++bit) {
            const bool asks = (0x7E020000U >> bit & 1) != 0; // NEWNS, then NEWCGROUP to NEWNET
            BOOST_TEST(ask(one.architecture, one.clone, 1ULL << bit | 17) == (asks ? refused : allowed), bit);
        }
    }
}

BOOST_AUTO_TEST_CASE(socket_reaches_no_hypervisor) {
    for (const auto& one : ways) {
        for (const std::uint64_t family : {1ULL, 2ULL, 10ULL, 16ULL, 17ULL, 39ULL, 41ULL}) {
            BOOST_TEST(ask(one.architecture, one.socket, family) == allowed, family);
        }
        BOOST_TEST(ask(one.architecture, one.socket, 40) == refused);
        // The kernel reads half of the register: rubbish above it is no way around.
        BOOST_TEST(ask(one.architecture, one.socket, 0xFFFFFFFF00000028ULL) == refused);
    }
}

BOOST_AUTO_TEST_CASE(personality_keeps_to_the_usual_ones) {
    for (const auto& one : ways) {
        for (const std::uint64_t persona : {0x0ULL, 0x8ULL, 0x20000ULL, 0x20008ULL, 0xFFFFFFFFULL}) {
            BOOST_TEST(ask(one.architecture, one.personality, persona) == allowed, persona);
        }
        for (const std::uint64_t persona :
             {0x1ULL, 0x40000ULL, 0x100000ULL, 0x400000ULL, 0x20009ULL, 0xFFFFFFFEULL}) {
            BOOST_TEST(ask(one.architecture, one.personality, persona) == refused, persona);
        }
    }
}

BOOST_AUTO_TEST_CASE(other_ways_into_the_kernel_are_shut) {
    for (const std::uint32_t number : {0U, 1U, 39U, 59U, 165U, 272U, 512U, 520U, 547U}) {
        BOOST_TEST(ask(amd64, 0x40000000U | number) == unknown, number); // x32
    }
    BOOST_TEST(ask(amd64, UINT32_MAX) == unknown);
    for (const std::uint32_t number : {0U, 1U, 39U}) {
        seccomp_data data{};
        data.nr = static_cast<int>(number);
        for (const std::uint32_t other : {0U, arm64, arm, amd64 ^ 1U}) {
            data.arch = other;
            BOOST_TEST(run(filter_for_amd64.code(), data).what == SECCOMP_RET_KILL_PROCESS, other);
        }
        for (const std::uint32_t other : {0U, amd64, i386}) {
            data.arch = other;
            BOOST_TEST(run(filter_for_arm64.code(), data).what == SECCOMP_RET_KILL_PROCESS, other);
        }
    }
}

BOOST_AUTO_TEST_CASE(an_answer_takes_few_steps) {
    for (const auto& one : ways) {
        for (std::uint32_t number = 0; number < 2000; ++number) {
            seccomp_data data{};
            data.nr = static_cast<int>(number);
            data.arch = one.architecture;
            data.args[0] = 0xFFFFFFFE;
            BOOST_TEST(run(code_for(one.architecture), data).steps <= 20, number);
        }
    }
}

BOOST_AUTO_TEST_CASE(the_list_has_no_call_twice) {
    std::set<std::string> names;
    for (const auto& call : filter_list::calls) {
        BOOST_TEST(names.insert(call.name).second, call.name);
    }
    for (unsigned column = 0; column < entries; ++column) {
        std::set<std::int32_t> seen;
        for (const auto& call : filter_list::calls) {
            BOOST_TEST((call.number[column] < 0 || seen.insert(call.number[column]).second), call.name);
        }
    }
    for (const char* name :
         {"mount", "unshare", "setns", "bpf", "keyctl", "add_key", "init_module", "userfaultfd",
          "io_uring_setup", "open_by_handle_at", "perf_event_open", "pidfd_getfd", "kexec_load"}) {
        BOOST_TEST(!names.contains(name), name);
    }
}

BOOST_AUTO_TEST_CASE(a_process_that_loads_it_is_held_by_it) {
    BOOST_TEST(prctl(PR_GET_SECCOMP) == 0); // not this one
    BOOST_TEST(
        holds([] { return prctl(PR_GET_SECCOMP) == 2 && prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1; }));
    BOOST_TEST(
        holds([] { return fails(EPERM, SYS_mount) && fails(EPERM, SYS_bpf) && fails(EPERM, SYS_add_key); }));
    BOOST_TEST(holds([] { return fails(EPERM, SYS_unshare, 0x10000000) && fails(EPERM, SYS_setns, 0, 0); }));
    BOOST_TEST(holds([] { return fails(EPERM, SYS_clone, 0x10000000 | 17) && fails(ENOSYS, SYS_clone3); }));
    BOOST_TEST(holds([] { return fails(EPERM, SYS_socket, 40, 1) && fails(ENOSYS, 1'999); }));
    BOOST_TEST(holds(
        [] { return fails(EPERM, SYS_personality, 0x40000) && syscall(SYS_personality, 0xFFFFFFFF) >= 0; }));
    BOOST_TEST(holds([] { return socket(AF_UNIX, SOCK_STREAM, 0) >= 0 && open("/dev/null", O_RDWR) >= 0; }));
    BOOST_TEST(prctl(PR_GET_SECCOMP) == 0);
}

BOOST_AUTO_TEST_CASE(its_children_inherit_it) {
    BOOST_TEST(holds([] {
        const pid_t pid = fork();
        if (pid == 0) {
            execl("/bin/sh", "sh", "-c", "grep -q '^Seccomp:.2' /proc/self/status", nullptr);
            _exit(97);
        }
        int status = -1;
        return waitpid(pid, &status, 0) == pid && status == 0;
    }));
}

#if defined(__x86_64__)
BOOST_AUTO_TEST_CASE(the_doors_for_32_bits_are_watched) {
    constexpr long i386_getpid = 20;
    constexpr long i386_mount = 21;
    constexpr long i386_unshare = 310;
    BOOST_TEST(holds([] { return fails(ENOSYS, 0x40000000 | 39) && fails(ENOSYS, 0x40000000 | 165); }));
    const pid_t pid = fork();
    if (pid == 0) {
        _exit(call_as_i386(i386_getpid, 0) == getpid() ? 0 : 1); // ends with a signal where there is none
    }
    int status = -1;
    waitpid(pid, &status, 0);
    if (status != 0) {
        BOOST_TEST_MESSAGE("this kernel runs no 32-bit programs");
        return;
    }
    BOOST_TEST(holds([] { return call_as_i386(i386_getpid, 0) == getpid(); }));
    BOOST_TEST(holds([] { return call_as_i386(i386_mount, 0) == -EPERM; }));
    BOOST_TEST(holds([] { return call_as_i386(i386_unshare, 0x10000000) == -EPERM; }));
    BOOST_TEST(holds([] { return call_as_i386(120, 0x10000000 | 17) == -EPERM; })); // clone
    BOOST_TEST(holds([] { return call_as_i386(359, 40) == -EPERM; }));              // socket
}
#endif

BOOST_AUTO_TEST_CASE(the_agent_serves_behind_it_or_not_at_all) {
    const std::string program = SANDBOXD_BINARY_DIR "/sandboxd-agent";
    // A filter from before that lets no further one be loaded.
    for (const bool may : {true, false}) {
        int ends[2];
        int words[2];
        BOOST_REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
        BOOST_REQUIRE(pipe2(words, O_CLOEXEC) == 0);
        const pid_t pid = fork();
        if (pid == 0) {
            dup2(words[1], 2);
            dup2(ends[1], 3);
            if (!may) {
                sock_filter none[] = {{BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
                                      {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_seccomp},
                                      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | EACCES},
                                      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
                const sock_fprog filter{4, none};
                prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
                prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
            }
            execl(program.c_str(), program.c_str(), "serve", "--listen-fd", "3", "--filter", nullptr);
            _exit(97);
        }
        close(words[1]);
        close(ends[1]);
        std::string said;
        char buffer[256];
        for (ssize_t count = 0; (count = read(words[0], buffer, sizeof buffer)) > 0;) {
            said.append(buffer, static_cast<std::size_t>(count));
        }
        int status = -1;
        if (may) {
            // It has left its standard error: the filter is loaded.
            std::ifstream file("/proc/" + std::to_string(pid) + "/status");
            std::stringstream text;
            text << file.rdbuf();
            BOOST_TEST(text.str().find("\nSeccomp:\t2\n") != std::string::npos);
            BOOST_TEST(text.str().find("\nNoNewPrivs:\t1\n") != std::string::npos);
            kill(pid, SIGKILL);
            BOOST_TEST(said.empty());
            BOOST_TEST(waitpid(pid, &status, 0) == pid);
        } else {
            BOOST_TEST(said == "the system-call filter can't be loaded: Permission denied\n");
            BOOST_TEST(waitpid(pid, &status, 0) == pid);
            BOOST_TEST(WIFEXITED(status));
            BOOST_TEST(WEXITSTATUS(status) == 3);
        }
        close(words[0]);
        close(ends[0]);
    }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace sandboxd::agent
