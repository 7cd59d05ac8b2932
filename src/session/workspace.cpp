#include "session/workspace.hpp"

#include "core/fd.hpp"
#include "core/random.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

namespace sandboxd::session::blocking {

namespace {

constexpr int directory_only = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

/// Deeper directories are moved up and taken on their own, so that hostile nesting costs neither stack nor
/// descriptors.
constexpr int deepest = 32;

constexpr std::string_view swept_prefix = ".swept-";

error start_error(const std::string& what, int errnum) {
    return {errc::start_failed, os_error(what, errnum).message};
}

/// An id can't hold a slash and starts with a letter or digit (contract 1.2.1); checked again where it
/// becomes a path that is removed.
bool is_plain_name(const std::string& id) {
    return !id.empty() && id.front() != '.' && id.find('/') == std::string::npos &&
           id.find('\0') == std::string::npos;
}

std::vector<std::string> names_in(int fd) {
    std::vector<std::string> names;
    const int copy = ::openat(fd, ".", directory_only);
    if (copy < 0) {
        return names;
    }
    const std::unique_ptr<DIR, int (*)(DIR*)> listing(::fdopendir(copy), ::closedir);
    if (!listing) {
        ::close(copy);
        return names;
    }
    while (const dirent* one = ::readdir(listing.get())) {
        const std::string_view name(one->d_name);
        if (name != "." && name != "..") {
            names.emplace_back(name);
        }
    }
    return names;
}

/// Also one that its owner may not enter, which matters where the service is not root.
core::unique_fd open_directory(int parent, const std::string& name) {
    core::unique_fd fd(::openat(parent, name.c_str(), directory_only));
    if (!fd && errno == EACCES) {
        const core::unique_fd handle(
            ::openat(parent, name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
        const std::string same = "/proc/self/fd/" + std::to_string(handle.get());
        if (handle && ::chmod(same.c_str(), 0700) == 0) {
            fd.reset(::openat(parent, name.c_str(), directory_only));
        }
    }
    return fd;
}

/// Empties the directory `fd`; what lies deeper than allowed is moved to `top` under a fresh name.
void empty_directory(int fd, int top, int depth) {
    for (const auto& name : names_in(fd)) {
        if (::unlinkat(fd, name.c_str(), 0) == 0 || (errno != EISDIR && errno != EPERM)) {
            continue;
        }
        if (depth >= deepest) {
            const std::string fresh = ".purge-" + core::random_hex(8);
            if (::renameat(fd, name.c_str(), top, fresh.c_str()) == 0) {
                continue;
            }
        }
        const core::unique_fd below = open_directory(fd, name);
        if (below) {
            if (depth < deepest) {
                ::fchmod(below.get(), 0700);
                empty_directory(below.get(), top, depth + 1);
            }
            ::unlinkat(fd, name.c_str(), AT_REMOVEDIR);
        }
    }
}

bool is_session_id(const std::string& name) {
    const auto plain = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    };
    const auto inside = [&plain](char c) { return plain(c) || c == '.' || c == '_' || c == '-'; };
    return !name.empty() && name.size() <= 64 && plain(name.front()) && std::ranges::all_of(name, inside);
}

/// Removes `name` below `top`, whatever it holds.
bool remove_below(int top, const std::string& name) {
    {
        const core::unique_fd own(::openat(top, name.c_str(), directory_only));
        if (!own) {
            return errno == ENOENT;
        }
        // Each round takes 32 levels off what was moved up; a tree made of rounds without end does not exist.
        for (int round = 0; round < 100'000 && !names_in(own.get()).empty(); ++round) {
            const auto before = names_in(own.get());
            empty_directory(own.get(), own.get(), 1);
            if (names_in(own.get()) == before) {
                break; // nothing moves any more
            }
        }
    }
    return ::unlinkat(top, name.c_str(), AT_REMOVEDIR) == 0;
}

} // namespace

std::string workspace_path(const std::string& root, const std::string& id) {
    return root + "/" + id + "/workspace";
}

std::string workspace_root(const std::string& path, const std::string& id) {
    const auto below = workspace_path("", id).size();
    return path.size() > below ? path.substr(0, path.size() - below) : std::string();
}

bool workspace_exists(const std::string& root, const std::string& id) {
    if (!is_plain_name(id)) {
        return false;
    }
    struct stat found{};
    return ::lstat(workspace_path(root, id).c_str(), &found) == 0 && S_ISDIR(found.st_mode);
}

result<std::string> make_workspace(const std::string& root, const std::string& id,
                                   std::optional<std::uint32_t> uid) {
    if (!is_plain_name(id)) {
        return error{errc::invalid, "Not a session id: " + id};
    }
    const core::unique_fd top(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!top) {
        return start_error("The workspace root can't be opened", errno);
    }
    if (::mkdirat(top.get(), id.c_str(), 0700) != 0 && errno != EEXIST) {
        return start_error("The workspace of " + id + " can't be created", errno);
    }
    const core::unique_fd own(::openat(top.get(), id.c_str(), directory_only));
    if (!own) {
        return start_error("The workspace of " + id + " can't be opened", errno);
    }
    if (::mkdirat(own.get(), "workspace", 0755) == 0) {
        // Whatever the umask is: other users of the sandbox enter it.
        if (::fchmodat(own.get(), "workspace", 0755, 0) != 0) {
            return start_error("The workspace of " + id + " can't be made accessible", errno);
        }
    } else if (errno != EEXIST) {
        return start_error("The workspace of " + id + " can't be created", errno);
    }
    const core::unique_fd workspace(::openat(own.get(), "workspace", directory_only));
    if (!workspace) {
        return start_error("The workspace of " + id + " can't be opened", errno);
    }
    if (uid && ::fchown(workspace.get(), *uid, static_cast<gid_t>(-1)) != 0) {
        return start_error("The workspace directory of " + id + " can't be given to uid " +
                               std::to_string(*uid) +
                               " (run sandboxd with the privilege to chown, set SANDBOXD_SANDBOX_UID to the "
                               "service's own uid, or unset it)",
                           errno);
    }
    ::futimens(own.get(), nullptr);
    return workspace_path(root, id);
}

bool remove_workspace(const std::string& root, const std::string& id) {
    if (!is_plain_name(id)) {
        return false;
    }
    const core::unique_fd top(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!top) {
        return errno == ENOENT;
    }
    return remove_below(top.get(), id);
}

void remove_empty_workspace(const std::string& root, const std::string& id) {
    const core::unique_fd top(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const core::unique_fd own(top && is_plain_name(id) ? ::openat(top.get(), id.c_str(), directory_only)
                                                       : -1);
    if (own && (::unlinkat(own.get(), "workspace", AT_REMOVEDIR) == 0 || errno == ENOENT)) {
        ::unlinkat(top.get(), id.c_str(), AT_REMOVEDIR);
    }
}

std::vector<std::pair<std::string, double>> list_workspaces(const std::string& root) {
    std::vector<std::pair<std::string, double>> found;
    const core::unique_fd top(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!top) {
        return found;
    }
    for (auto& name : names_in(top.get())) {
        struct stat facts{};
        if (is_session_id(name) && ::fstatat(top.get(), name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISDIR(facts.st_mode)) {
            const auto& time = facts.st_mtim;
            found.emplace_back(std::move(name),
                               static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9);
        }
    }
    return found;
}

/// Moved aside first: a session that is opened meanwhile makes itself a new one and does not lose it.
bool sweep_workspace(const std::string& root, const std::string& id, const std::function<bool()>& in_use) {
    const core::unique_fd top(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!top || !is_session_id(id)) {
        return false;
    }
    const std::string aside = std::string(swept_prefix) + core::random_hex(8);
    if (::renameat(top.get(), id.c_str(), top.get(), aside.c_str()) != 0) {
        return errno == ENOENT;
    }
    if (in_use() && ::renameat2(top.get(), aside.c_str(), top.get(), id.c_str(), RENAME_NOREPLACE) == 0) {
        return false;
    }
    return remove_below(top.get(), aside);
}

void sweep_leftovers(const std::string& root) {
    const core::unique_fd top(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!top) {
        return;
    }
    for (const auto& name : names_in(top.get())) {
        if (name.starts_with(swept_prefix)) {
            remove_below(top.get(), name);
        }
    }
}

} // namespace sandboxd::session::blocking
