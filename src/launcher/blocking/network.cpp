#include "launcher/blocking/network.hpp"

#include "launcher/blocking/files.hpp"
#include "launcher/blocking/runtime_start.hpp"

#include <cerrno>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

namespace sandboxd::launcher::blocking {

namespace {

constexpr const char* program_name = "pasta";
constexpr unsigned tun_major = 10;
constexpr unsigned tun_minor = 200;

error unsupported(const std::string& why) {
    return {errc::unsupported, "network_mode 'bridge' can't be had: " + why};
}

/// The device that makes network interfaces, openable for whoever may make one: on many hosts the one in /dev
/// is for root only. Seen by the calling process alone.
bool show_tun_device() {
    return ::unshare(CLONE_NEWNS) == 0 && ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
           (::mkdir("/dev/net", 0755) == 0 || errno == EEXIST) &&
           ::mount("sandboxd", "/dev/net", "tmpfs", MS_NOSUID | MS_NOEXEC, "mode=755,size=64k") == 0 &&
           ::mknod("/dev/net/tun", S_IFCHR | 0666, ::makedev(tun_major, tun_minor)) == 0 &&
           ::chmod("/dev/net/tun", 0666) == 0;
}

/// In the new process.
bool enter(int users, int cgroup) {
    return (cgroup < 0 || ::write(cgroup, "0", 1) == 1) && show_tun_device() &&
           ::setns(users, CLONE_NEWUSER) == 0 && ::setgroups(0, nullptr) == 0 && ::setresgid(0, 0, 0) == 0 &&
           ::setresuid(0, 0, 0) == 0;
}

/// One hierarchy is enough to find it again; where there are device rules they would keep it from its work.
std::string cgroup_directory(const cgroup_layout& cgroups, const std::string& path) {
    for (const char* controller : {"pids", "memory"}) {
        if (auto found = cgroups.directory(controller, path); !found.empty()) {
            return found;
        }
    }
    const auto all = cgroups.directories(path);
    return all.empty() ? std::string() : all.front();
}

result<core::unique_fd> make_cgroup(const worker_context& context, const std::string& slot) {
    const auto directory = cgroup_directory(context.cgroups, network_cgroup(context, slot));
    if (directory.empty() || (::mkdir(directory.c_str(), 0755) != 0 && errno != EEXIST)) {
        return os_error("the cgroup of the network", directory.empty() ? ENOENT : errno);
    }
    core::unique_fd procs(::open((directory + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC));
    if (!procs) {
        return os_error(directory + "/cgroup.procs", errno);
    }
    return procs;
}

result<core::unique_fd> open_namespace(pid_t pid, const char* name) {
    const auto path = "/proc/" + std::to_string(pid) + "/ns/" + name;
    core::unique_fd opened(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!opened) {
        return os_error(path, errno);
    }
    return opened;
}

std::vector<std::string> arguments() {
    return {program_name,     "--config-net", "--quiet", "--ipv4-only",  "--no-map-gw", "--address",
            "10.0.2.100",     "--netmask",    "24",      "--gateway",    "10.0.2.2",    "--dns-forward",
            network_resolver, "--tcp-ports",  "none",    "--udp-ports",  "none",        "--tcp-ns",
            "none",           "--udp-ns",     "none",    "--netns-only", "--netns",     "/proc/self/fd/3"};
}

} // namespace

std::string network_cgroup(const worker_context& context, const std::string& slot) {
    return context.cgroup(slot) + ".network";
}

result<void> start_network(const worker_context& context, const std::string& slot, pid_t pid,
                           deadline until) {
    if (!find_program(program_name)) {
        return unsupported("the program 'pasta' is not installed (on Debian: apt-get install passt)");
    }
    const auto users = open_namespace(pid, "user");
    const auto net = open_namespace(pid, "net");
    const auto cgroup = make_cgroup(context, slot);
    for (const auto* made : {&users, &net, &cgroup}) {
        if (!*made) {
            return unsupported(made->error().message);
        }
    }
    child_program program;
    program.argv = arguments();
    program.env = program_environment();
    program.passed = {net->get()};
    program.prepare = [&] { return enter(users->get(), cgroup->get()); };
    std::string last;
    const auto line = [&](std::string_view text) {
        if (text.substr(0, 14) != "Failed to send") { // to a system log that is not there
            last = text;
        }
    };
    const auto end = run_child_lines(std::move(program), until, line);
    if (!end) {
        return unsupported(end.error().message);
    }
    if (end->timed_out) {
        return unsupported("pasta did not set the network up in time");
    }
    return end->exit_code == 0 ? result<void>() : unsupported("pasta failed: " + last);
}

result<void> write_resolver(int root, std::uint32_t uid_base) {
    const auto etc = make_directories_in_root(root, "etc", uid_base, uid_base);
    if (!etc) {
        return etc.error();
    }
    const std::string text = std::string("nameserver ") + network_resolver + "\n";
    // A new file: an image may have a link there to what its own resolver would write.
    if ((::unlinkat(etc->get(), "resolv.conf", 0) != 0 && errno != ENOENT) ||
        !write_file_at(etc->get(), "resolv.conf", text, 0644) ||
        ::fchownat(etc->get(), "resolv.conf", uid_base, uid_base, AT_SYMLINK_NOFOLLOW) != 0 ||
        ::fchmodat(etc->get(), "resolv.conf", 0644, 0) != 0) {
        return os_error("/etc/resolv.conf", errno);
    }
    return {};
}

} // namespace sandboxd::launcher::blocking
