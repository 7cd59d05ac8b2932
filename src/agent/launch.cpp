#include "agent/launch.hpp"

#include "agent/launch_child.hpp"
#include "agent/passwd.hpp"
#include "agent/path_search.hpp"

#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

namespace sandboxd::agent {

namespace {

using plan = launch::plan;
using protocol::failure_kind;

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

void describe(const plan& tried, launch_result& out) {
    out.os_errno = tried.error;
    switch (tried.failed_at) {
    case plan::stage::exec:
        describe_exec(tried.what, tried.error, out);
        return;
    case plan::stage::directory:
        out.failure = failure_kind::directory;
        out.exit_code = 126;
        out.text = std::string(tried.what.directory) +
                   ": the working directory can't be entered: " + reason(tried.error);
        return;
    case plan::stage::identity:
        out.failure = failure_kind::os;
        out.exit_code = 126;
        out.text = "the user can't be changed: " + reason(tried.error);
        return;
    case plan::stage::setup:
        break;
    }
    out.failure = failure_kind::os;
    out.exit_code = 126;
    out.text = "the command could not be set up: " + reason(tried.error);
}

/// Another user: the groups that list it, and HOME unless the start names one.
void find_identity(plan& to) {
    to.user = to.what.user.value_or(geteuid());
    const auto passwd = read_small_file("/etc/passwd");
    const auto entry = find_user(passwd, to.user);
    to.group = to.what.group ? *to.what.group : entry ? entry->group : to.what.user ? gid_t{0} : getegid();
    if (entry) {
        to.groups = groups_of(read_small_file("/etc/group"), entry->name);
    }
    if (!to.what.has_home && to.setup.own_home) {
        to.home = "HOME=" + (entry && !entry->home.empty() ? std::string(entry->home) : "/");
    }
    to.switch_user = true;
}

void add_variable(command& what, char* variable) {
    what.variables.insert(what.variables.end() - 1, variable);
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

launch::launch() = default;

launch::~launch() = default;

launch_result launch::begin(std::span<char> payload, const launch_setup& setup) {
    plan_ = std::make_unique<plan>();
    auto& to = *plan_;
    to.setup = setup;
    if (const char* const sentence = build_command(payload, setup.base, to.what)) {
        return failed(failure_kind::invalid, 0, sentence);
    }
    if (to.what.user || to.what.group) {
        find_identity(to);
    }
    if (!to.home.empty()) {
        std::erase_if(to.what.variables,
                      [](const char* one) { return one && std::strncmp(one, "HOME=", 5) == 0; });
        add_variable(to.what, to.home.data());
    }
    if (setup.mark != nullptr) {
        add_variable(to.what, setup.mark);
    }
    const char* const path = find_variable(to.what.variables.data(), "PATH");
    to.path = path != nullptr ? std::string_view(path) : default_path;
    if (!to.what.script.empty()) {
        to.script = script_file(to.what.script);
        if (!to.script.valid()) {
            return failed(failure_kind::os, errno, "the script could not be handed over: " + reason(errno));
        }
    }
    launch_result out;
    out.pid = start_child(to);
    if (out.pid < 0) {
        return failed(failure_kind::no_process, errno, "no process could be started: " + reason(errno));
    }
    return out;
}

bool launch::settled() const {
    return !plan_ || plan_->in_use == 0;
}

launch_result launch::failure() const {
    launch_result out;
    if (plan_ && plan_->error != 0) {
        describe(*plan_, out);
    }
    return out;
}

void launch::clear() {
    plan_.reset();
}

} // namespace sandboxd::agent
