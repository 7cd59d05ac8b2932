#include "launcher/blocking/mounts.hpp"

#include "launcher/bundle_config.hpp"

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <sched.h>
#include <string_view>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace sandboxd::launcher::blocking {

namespace {

bool write_whole(const std::string& path, std::string_view text) {
    const core::unique_fd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    return fd && ::write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

/// A process in a user namespace of its own, which is there as soon as this returns: nothing waits for the
/// process to run. Negative when there is none.
pid_t hold_namespace() {
    const pid_t parent = ::getpid();
    const auto holder = static_cast<pid_t>(::syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0L, 0L, 0L, 0L));
    if (holder == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        while (::getppid() == parent) {
            ::pause();
        }
        ::_exit(0);
    }
    return holder;
}

result<core::unique_fd> map_and_open(pid_t holder, std::uint32_t base) {
    const auto proc = "/proc/" + std::to_string(holder);
    const auto map = "0 " + std::to_string(base) + " " + std::to_string(ids_per_sandbox);
    if (!write_whole(proc + "/uid_map", map) || !write_whole(proc + "/gid_map", map)) {
        return os_error("mapping uids", errno);
    }
    core::unique_fd opened(::open((proc + "/ns/user").c_str(), O_RDONLY | O_CLOEXEC));
    if (!opened) {
        return os_error("opening a user namespace", errno);
    }
    return opened;
}

} // namespace

result<void> leave_mount_namespace() {
    if (::unshare(CLONE_NEWNS) != 0) {
        return os_error("a mount namespace", errno);
    }
    if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
        return os_error("making mounts private", errno);
    }
    return {};
}

ending_child::~ending_child() {
    while (pid_ > 0 && ::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
}

result<user_namespace> create_user_namespace(std::uint32_t base) {
    const pid_t holder = hold_namespace();
    if (holder < 0) {
        return os_error("a user namespace", errno);
    }
    auto opened = map_and_open(holder, base);
    ::kill(holder, SIGKILL);
    ending_child ending(holder);
    if (!opened) {
        return opened.error();
    }
    return user_namespace{std::move(*opened), std::move(ending)};
}

result<core::unique_fd> clone_mount(int source, const std::string& name, clone_options options) {
    const unsigned recursive = options.recursive ? AT_RECURSIVE : 0;
    core::unique_fd copy(
        ::open_tree(source, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | recursive));
    if (!copy) {
        return os_error("cloning the mount of " + name, errno);
    }
    mount_attr attributes{};
    attributes.attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
    if (options.read_only) {
        attributes.attr_set |= MOUNT_ATTR_RDONLY;
    }
    if (options.user_namespace >= 0) {
        attributes.attr_set |= MOUNT_ATTR_IDMAP;
        attributes.userns_fd = static_cast<std::uint64_t>(options.user_namespace);
    }
    if (::mount_setattr(copy.get(), "", AT_EMPTY_PATH | recursive, &attributes, sizeof attributes) != 0) {
        auto failure = os_error("an id-mapped mount of " + name, errno);
        if (errno == EINVAL) {
            failure.message +=
                " (its file system can't be id-mapped on this kernel: it must lie on ext4, xfs or "
                "btrfs, not on an overlay or a network)";
        }
        return failure;
    }
    return copy;
}

result<void> attach_mount(int mount, int target, const std::string& name) {
    if (::move_mount(mount, "", target, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) != 0) {
        return os_error("mounting " + name, errno);
    }
    return {};
}

result<void> mount_staging(const std::string& path) {
    if (::mount("sandboxd", path.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=16m") != 0) {
        return os_error("mounting a tmpfs on " + path, errno);
    }
    return {};
}

result<void> mount_overlay(const std::string& target, const std::string& lower, const std::string& layer,
                           bool kept) {
    // volatile where the layer ends with its sandbox: nothing is gained by flushing the whole disk then. The
    // kernel mounts a layer that was volatile only once.
    const auto options = "lowerdir=" + lower + ",upperdir=" + layer + "/upper,workdir=" + layer + "/work" +
                         (kept ? "" : ",volatile");
    if (::mount("overlay", target.c_str(), "overlay", MS_NOSUID | MS_NODEV, options.c_str()) != 0) {
        return os_error("mounting an overlay", errno);
    }
    return {};
}

} // namespace sandboxd::launcher::blocking
