#include "text/blocking/walls.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace sandboxd::text::blocking {

namespace {

constexpr unsigned nobody = 65'534;

#if defined(__x86_64__)
constexpr std::uint32_t architecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t architecture = AUDIT_ARCH_AARCH64;
#else
#error "the system calls of a confined program are listed for amd64 and arm64"
#endif

// What a dynamically linked program needs to start, read its input and files, compute and print.
constexpr std::array allowed_calls{
    __NR_read,
    __NR_readv,
    __NR_pread64,
    __NR_write,
    __NR_writev,
    __NR_close,
    __NR_lseek,
    __NR_fstat,
    __NR_newfstatat,
    __NR_statx,
    __NR_statfs,
    __NR_fstatfs,
    __NR_faccessat,
    __NR_faccessat2,
    __NR_readlinkat,
    __NR_getdents64,
    __NR_getcwd,
    __NR_ioctl,
    __NR_fcntl,
    __NR_fadvise64,
    __NR_dup,
    __NR_ppoll,
    __NR_mmap,
    __NR_munmap,
    __NR_mremap,
    __NR_mprotect,
    __NR_madvise,
    __NR_brk,
    __NR_rt_sigaction,
    __NR_rt_sigprocmask,
    __NR_rt_sigreturn,
    __NR_sigaltstack,
    __NR_futex,
    __NR_set_robust_list,
    __NR_set_tid_address,
    __NR_rseq,
    __NR_prlimit64,
    __NR_getrlimit,
    __NR_getrandom,
    __NR_getpid,
    __NR_gettid,
    __NR_getuid,
    __NR_geteuid,
    __NR_getgid,
    __NR_getegid,
    __NR_uname,
    __NR_sysinfo,
    __NR_sched_getaffinity,
    __NR_sched_yield,
    __NR_clock_gettime,
    __NR_clock_getres,
    __NR_gettimeofday,
    __NR_times,
    __NR_getrusage,
    __NR_exit,
    __NR_exit_group,
    __NR_execve,
    __NR_restart_syscall,
#if defined(__x86_64__)
    __NR_arch_prctl,
    __NR_access,
    __NR_stat,
    __NR_lstat,
    __NR_readlink,
    __NR_poll,
    __NR_time,
    __NR_dup2,
#endif
};

constexpr sock_filter load(std::size_t offset) {
    return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset));
}
constexpr sock_filter when_equal(std::uint32_t value, std::uint8_t then, std::uint8_t otherwise) {
    return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, then, otherwise);
}
constexpr sock_filter answer(std::uint32_t what) {
    return BPF_STMT(BPF_RET | BPF_K, what);
}
constexpr std::uint32_t refusal(int number) {
    return SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(number);
}

/// Flags of an open that only reads; O_CREAT and O_TRUNC change files even so.
constexpr std::uint32_t writing_flags = O_ACCMODE | O_CREAT | O_TRUNC | O_APPEND;

constexpr std::size_t open_rules = 4;
#if defined(__x86_64__)
constexpr std::size_t open_calls = 2;
#else
constexpr std::size_t open_calls = 1;
#endif
constexpr std::size_t rules = 4 + open_calls * (1 + open_rules) + 2 * allowed_calls.size() + 1;

constexpr auto filter = [] {
    std::array<sock_filter, rules> all{};
    std::size_t at = 0;
    const auto add = [&](sock_filter one) { all[at++] = one; };
    add(load(offsetof(seccomp_data, arch)));
    add(when_equal(architecture, 1, 0));
    add(answer(SECCOMP_RET_KILL_PROCESS));
    add(load(offsetof(seccomp_data, nr)));
    const auto open = [&](int call, std::size_t flags_at) {
        add(when_equal(static_cast<std::uint32_t>(call), 0, open_rules));
        add(load(offsetof(seccomp_data, args) +
                 8 * flags_at)); // the lower half: both machines are little-endian
        add(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, writing_flags, 0, 1));
        add(answer(refusal(EACCES)));
        add(answer(SECCOMP_RET_ALLOW));
    };
    open(__NR_openat, 2);
#if defined(__x86_64__)
    open(__NR_open, 1);
#endif
    for (const int call : allowed_calls) {
        add(when_equal(static_cast<std::uint32_t>(call), 0, 1));
        add(answer(SECCOMP_RET_ALLOW));
    }
    add(answer(refusal(EPERM)));
    return all;
}();

[[noreturn]] void give_up(int pipe) noexcept {
    const int number = errno;
    [[maybe_unused]] const auto told = ::write(pipe, &number, sizeof number);
    ::_exit(127);
}

bool limit(int what, std::uint64_t most) noexcept {
    const rlimit both{most, most};
    return ::setrlimit(static_cast<__rlimit_resource>(what), &both) == 0;
}

bool set_limits(const allowance& most) noexcept {
    const auto seconds = static_cast<std::uint64_t>(most.time.count() / 1000 + 1);
    return limit(RLIMIT_AS, most.memory) && limit(RLIMIT_CPU, seconds) && limit(RLIMIT_FSIZE, 0) &&
           limit(RLIMIT_CORE, 0) && limit(RLIMIT_NOFILE, 32);
}

/// Nobody's uid. By system call: the library's own would stop at every thread of the service's.
bool drop_identity() noexcept {
    if (::geteuid() != 0) {
        return true;
    }
    return ::syscall(SYS_setgroups, 0, nullptr) == 0 &&
           ::syscall(SYS_setresgid, nobody, nobody, nobody) == 0 &&
           ::syscall(SYS_setresuid, nobody, nobody, nobody) == 0;
}

bool set_filter() noexcept {
    sock_fprog program{static_cast<unsigned short>(filter.size()), const_cast<sock_filter*>(filter.data())};
    return ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

constexpr std::uint64_t reading =
    LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr std::uint64_t every_access = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1U) - 1; // version 1 of the interface

void let_read(int rules_fd, const char* path, std::uint64_t access) {
    const core::unique_fd where(::open(path, O_PATH | O_CLOEXEC));
    if (!where) {
        return; // not on this host
    }
    landlock_path_beneath_attr rule{};
    rule.allowed_access = access;
    rule.parent_fd = where.get();
    ::syscall(SYS_landlock_add_rule, rules_fd, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
}

} // namespace

core::unique_fd make_landlock_rules() {
    landlock_ruleset_attr attributes{};
    attributes.handled_access_fs = every_access;
    core::unique_fd all(
        static_cast<int>(::syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0)));
    if (all) {
        for (const char* path : {"/usr", "/lib", "/lib64", "/etc/fonts", "/var/cache/fontconfig"}) {
            let_read(all.get(), path, reading);
        }
        let_read(all.get(), "/etc/ld.so.cache", LANDLOCK_ACCESS_FS_READ_FILE);
    }
    return all;
}

void become_confined(const child_descriptors& own, char* const* argv, const allowance& most) noexcept {
    constexpr int failure = 3;
    if (::dup2(own.input, 0) < 0 || ::dup2(own.output, 1) < 0 || ::dup2(own.complaints, 2) < 0 ||
        ::dup3(own.failure, failure, O_CLOEXEC) < 0) {
        give_up(own.failure);
    }
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::signal(SIGPIPE, SIG_DFL);
    // Without root the kernel may refuse some; the filter below knows no socket in any case.
    if (::unshare(CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS) != 0) {
        ::unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS);
    }
    if (::chdir("/") != 0 || ::setsid() < 0 || !set_limits(most) || !drop_identity()) {
        give_up(failure);
    }
    // After the change of identity, which clears it: the program ends with the thread that waits for it.
    if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        ::prctl(PR_SET_DUMPABLE, 0) != 0) {
        give_up(failure);
    }
    if (own.landlock >= 0 && ::syscall(SYS_landlock_restrict_self, own.landlock, 0) != 0) {
        give_up(failure);
    }
    if (::syscall(SYS_close_range, failure + 1, ~0U, 0) != 0 || !set_filter()) {
        give_up(failure);
    }
    char path[] = "PATH=/usr/bin:/bin";
    char locale[] = "LC_ALL=C.UTF-8";
    char* const environment[] = {path, locale, nullptr};
    ::execve(argv[0], argv, environment);
    give_up(failure);
}

} // namespace sandboxd::text::blocking
