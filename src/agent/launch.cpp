#include "agent/launch.hpp"

#include "agent/descriptor.hpp"
#include "agent/passwd.hpp"
#include "agent/path_search.hpp"

#include <fcntl.h>
#include <grp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cerrno>
#include <csignal>
#include <cstring>

namespace sandboxd::agent {

namespace {

using protocol::failure_kind;

/// Where a long script is found by the shell that reads it (command.cpp).
constexpr int script_descriptor = 9;

enum class stage : int { setup, identity, directory, exec };

/// What the child needs, and where it leaves what went wrong: both live in the parent's memory, which it
/// shares until the exec. It must not allocate and may not change anything else there.
struct child_plan {
    const command* what = nullptr;
    const launch_setup* setup = nullptr;
    const char* path = nullptr;
    int script = -1;
    bool switch_user = false;
    uid_t user = 0;
    gid_t group = 0;
    const std::vector<gid_t>* groups = nullptr;
    volatile stage failed_at = stage::setup;
    volatile int error = 0;
};

int attempt(const char* file, void* context) {
    const auto& plan = *static_cast<child_plan*>(context);
    execve(file, plan.what->arguments.data(), plan.what->variables.data());
    return errno;
}

[[noreturn]] void give_up(child_plan& plan, stage where, int error) {
    plan.failed_at = where;
    plan.error = error;
    _exit(127);
}

/// The system calls themselves: the C library's would try to tell other threads.
bool become(const child_plan& plan) {
    return syscall(SYS_setgroups, plan.groups->size(), plan.groups->data()) == 0 &&
           syscall(SYS_setresgid, plan.group, plan.group, plan.group) == 0 &&
           syscall(SYS_setresuid, plan.user, plan.user, plan.user) == 0;
}

[[noreturn]] void child(child_plan& plan) {
    const auto& setup = *plan.setup;
    setsid();
    if (dup2(setup.in, 0) < 0 || dup2(setup.out, 1) < 0 || dup2(setup.err, 2) < 0 ||
        (setup.terminal && ioctl(0, TIOCSCTTY, 0) != 0)) {
        give_up(plan, stage::setup, errno);
    }
    if (plan.script >= 0 && (plan.script == script_descriptor ? fcntl(plan.script, F_SETFD, 0)
                                                              : dup2(plan.script, script_descriptor)) < 0) {
        give_up(plan, stage::setup, errno);
    }
    signal(SIGPIPE, SIG_DFL); // handlers end by themselves at exec, ignoring does not
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    if (plan.switch_user && !become(plan)) {
        give_up(plan, stage::identity, errno);
    }
    if (plan.what->directory != nullptr && chdir(plan.what->directory) != 0) {
        give_up(plan, stage::directory, errno);
    }
    give_up(plan, stage::exec, exec_along_path(plan.what->arguments[0], plan.path, attempt, &plan));
}

/// A descriptor to read the script from. The shell closes its own copy first, so that the script's programs
/// don't get it.
descriptor script_file(std::string_view script) {
    constexpr std::string_view first = "exec 9<&-;";
    descriptor file(memfd_create("script", MFD_CLOEXEC));
    const auto put = [&](std::string_view bytes) {
        while (!bytes.empty()) {
            const auto count = write(file.get(), bytes.data(), bytes.size());
            if (count <= 0) {
                return false;
            }
            bytes.remove_prefix(static_cast<std::size_t>(count));
        }
        return true;
    };
    if (!file.valid() || !put(first) || !put(script) || lseek(file.get(), 0, SEEK_SET) != 0) {
        return {};
    }
    return file;
}

std::string reason(int error) {
    const char* const text = strerrordesc_np(error);
    return text != nullptr ? text : "error " + std::to_string(error);
}

void describe_exec(const command& what, int error, launch_result& out) {
    const std::string program = what.arguments[0];
    const bool slash = program.find('/') != std::string::npos;
    switch (error) {
    case ENOENT:
    case ENOTDIR:
    case ELOOP:
    case ENAMETOOLONG:
        out.failure = failure_kind::not_found;
        out.exit_code = 127;
        if (what.shell) {
            out.text = "sh: not found: there is no shell in this sandbox";
        } else if (!slash) {
            out.text = program + ": not found";
        } else {
            out.text = program + ": " + reason(error);
        }
        return;
    case EAGAIN:
    case ENOMEM:
        out.failure = failure_kind::no_process;
        out.text = "no process could be started: " + reason(error);
        return;
    case E2BIG:
        out.failure = failure_kind::os;
        out.exit_code = 126;
        out.text = "the arguments and the environment are too long together, or one of them is above 128 KiB";
        return;
    default:
        break;
    }
    out.failure = failure_kind::not_executable;
    out.exit_code = 126;
    struct stat status{};
    const bool is_directory = slash && stat(program.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
    out.text = program + ": " + (is_directory ? reason(EISDIR) : reason(error));
}

void describe(const child_plan& plan, launch_result& out) {
    out.os_errno = plan.error;
    switch (plan.failed_at) {
    case stage::exec:
        describe_exec(*plan.what, plan.error, out);
        return;
    case stage::directory:
        out.failure = failure_kind::directory;
        out.exit_code = 126;
        out.text = std::string(plan.what->directory) +
                   ": the working directory can't be entered: " + reason(plan.error);
        return;
    case stage::identity:
        out.failure = failure_kind::os;
        out.exit_code = 126;
        out.text = "the user can't be changed: " + reason(plan.error);
        return;
    case stage::setup:
        break;
    }
    out.failure = failure_kind::os;
    out.exit_code = 126;
    out.text = "the command could not be set up: " + reason(plan.error);
}

/// Another user: the groups that list it, and HOME unless the start names one.
void find_identity(const command& what, const launch_setup& setup, child_plan& plan,
                   std::vector<gid_t>& groups, std::string& home) {
    plan.user = what.user.value_or(geteuid());
    const auto passwd = read_small_file("/etc/passwd");
    const auto entry = find_user(passwd, plan.user);
    plan.group = what.group ? *what.group : entry ? entry->group : what.user ? gid_t{0} : getegid();
    if (entry) {
        groups = groups_of(read_small_file("/etc/group"), entry->name);
    }
    if (!what.has_home && setup.own_home) {
        home = "HOME=" + (entry && !entry->home.empty() ? std::string(entry->home) : "/");
    }
    plan.groups = &groups;
    plan.switch_user = true;
}

launch_result failed(failure_kind kind, int error, std::string text) {
    launch_result out;
    out.failure = kind;
    out.exit_code = kind == failure_kind::no_process ? 0 : 126;
    out.os_errno = error;
    out.text = std::move(text);
    return out;
}

} // namespace

launch_result launch(std::span<char> payload, const launch_setup& setup) {
    command what;
    if (const char* const sentence = build_command(payload, setup.base, what)) {
        return failed(failure_kind::invalid, 0, sentence);
    }
    child_plan plan;
    plan.what = &what;
    plan.setup = &setup;
    std::vector<gid_t> groups;
    std::string home;
    if (what.user || what.group) {
        find_identity(what, setup, plan, groups, home);
    }
    if (!home.empty()) {
        std::erase_if(what.variables,
                      [](const char* one) { return one && std::strncmp(one, "HOME=", 5) == 0; });
        what.variables.insert(what.variables.end() - 1, home.data());
    }
    if (setup.mark != nullptr) {
        what.variables.insert(what.variables.end() - 1, setup.mark);
    }
    const char* const path = find_variable(what.variables.data(), "PATH");
    plan.path = path != nullptr ? path : default_path.data();
    descriptor script;
    if (!what.script.empty()) {
        script = script_file(what.script);
        if (!script.valid()) {
            return failed(failure_kind::os, errno, "the script could not be handed over: " + reason(errno));
        }
        plan.script = script.get();
    }
    const pid_t pid = vfork();
    if (pid == 0) {
        child(plan);
    }
    launch_result out;
    if (pid < 0) {
        return failed(failure_kind::no_process, errno, "no process could be started: " + reason(errno));
    }
    if (plan.error == 0) {
        out.pid = pid;
    } else {
        describe(plan, out);
    }
    return out;
}

} // namespace sandboxd::agent
