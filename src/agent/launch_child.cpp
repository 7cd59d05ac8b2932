#include "agent/launch_child.hpp"

#include "agent/path_search.hpp"
#include "agent/raw_call.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include <csignal>

namespace sandboxd::agent {

namespace {

/// Where a long script is found by the shell that reads it (command.cpp).
constexpr int script_descriptor = 9;

/// A child that shares memory must not be instrumented: the bookkeeping of its stack would be shared too.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool instrumented = true;
#elif defined(__has_feature)
constexpr bool instrumented = __has_feature(address_sanitizer);
#else
constexpr bool instrumented = false;
#endif

alignas(64) char child_stack[64 * 1024];

using plan = launch::plan;

int attempt(const char* file, void* context) {
    auto& what = static_cast<plan*>(context)->what;
    return raw_call(SYS_execve, file, what.arguments.data(), what.variables.data());
}

int become(const plan& to) {
    int error = raw_call(SYS_setgroups, to.groups.size(), to.groups.data());
    if (error == 0) {
        error = raw_call(SYS_setresgid, to.group, to.group, to.group);
    }
    return error != 0 ? error : raw_call(SYS_setresuid, to.user, to.user, to.user);
}

/// Descriptors, session and signals.
int set_up(const plan& to) {
    const auto& setup = to.setup;
    // A process group is enough to be signalled as one, and a session costs the kernel much more.
    int error = setup.terminal || setup.mark != nullptr ? raw_call(SYS_setsid) : raw_call(SYS_setpgid, 0, 0);
    const int wanted[] = {setup.in, setup.out, setup.err};
    for (int number = 0; number < 3; ++number) {
        if (wanted[number] >= 0 && error == 0) {
            error = raw_call(SYS_dup3, wanted[number], number, 0);
        }
    }
    if (setup.terminal && error == 0) {
        error = raw_call(SYS_ioctl, 0, TIOCSCTTY, 0);
    }
    const int script = to.script.get();
    if (script >= 0 && error == 0) {
        error = script == script_descriptor ? raw_call(SYS_fcntl, script, F_SETFD, 0)
                                            : raw_call(SYS_dup3, script, script_descriptor, 0);
    }
    const std::uint64_t none = 0;
    return error != 0 ? error : raw_call(SYS_rt_sigprocmask, SIG_SETMASK, &none, 0, sizeof none);
}

/// Returns only when the program does not run.
int child(void* context) {
    auto& to = *static_cast<plan*>(context);
    to.failed_at = plan::stage::setup;
    to.error = set_up(to);
    if (to.error == 0 && to.switch_user) {
        to.failed_at = plan::stage::identity;
        to.error = become(to);
    }
    if (to.error == 0 && to.what.directory != nullptr) {
        to.failed_at = plan::stage::directory;
        to.error = raw_call(SYS_chdir, to.what.directory);
    }
    if (to.error == 0) {
        to.failed_at = plan::stage::exec;
        to.error = exec_along_path(to.what.arguments[0], to.path, attempt, &to);
    }
    return 127;
}

} // namespace

pid_t start_child(launch::plan& to) {
    to.in_use = 1;
    const bool waits = to.setup.wait || instrumented;
    const int flags = CLONE_VM | CLONE_CHILD_CLEARTID | (waits ? CLONE_VFORK : 0) | SIGCHLD;
    const pid_t pid =
        clone(child, child_stack + sizeof child_stack, flags, &to, nullptr, nullptr, &to.in_use);
    if (waits) {
        to.in_use = 0;
    }
    return pid;
}

} // namespace sandboxd::agent
