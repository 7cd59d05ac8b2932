#include "session/workspace.hpp"

#include "core/fd.hpp"
#include "core/random.hpp"
#include "hostfs/blocking/directory.hpp"
#include "hostfs/blocking/remove.hpp"
#include "hostfs/paths.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <string_view>
#include <utility>
#include <vector>

namespace sandboxd::session::blocking {

namespace {

namespace host = hostfs::blocking;
using hostfs::is_plain_name;

constexpr int directory_only = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

/// For one removal, however large: what fills a directory as fast as it is emptied must not keep a worker.
constexpr std::chrono::minutes removal_time{10};

constexpr std::string_view swept_prefix = ".swept-";

error start_error(const std::string& what, int errnum) {
    return {errc::start_failed, os_error(what, errnum).message};
}

bool is_session_id(const std::string& name) {
    const auto plain = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    };
    const auto inside = [&plain](char c) { return plain(c) || c == '.' || c == '_' || c == '-'; };
    return !name.empty() && name.size() <= 64 && plain(name.front()) && std::ranges::all_of(name, inside);
}

/// Calls `visit` with each name in the directory, in the order of the file system.
template <class F>
void for_each_name(int directory, F visit) {
    host::directory_reader names(directory);
    for (auto one = names.next(); one && *one; one = names.next()) {
        visit(std::string((*one)->name));
    }
}

/// Removes the directory `name` below `top`, whatever it holds.
bool remove_below(core::unique_fd top, const std::string& name) {
    struct stat found{};
    if (::fstatat(top.get(), name.c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0) {
        return errno == ENOENT;
    }
    if (!S_ISDIR(found.st_mode)) {
        return false;
    }
    host::node parent;
    parent.handle = std::move(top);
    return !host::remove_entry(parent, name, std::chrono::steady_clock::now() + removal_time,
                               host::removal::thorough);
}

core::unique_fd open_root(const std::string& root) {
    return core::unique_fd(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
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
    core::unique_fd top = open_root(root);
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

result<std::string> workspace_claim::make(const std::string& root, const std::string& id,
                                          std::optional<std::uint32_t> uid) {
    const std::lock_guard lock(mutex_);
    if (over_) {
        return error{errc::gone, "The workspace of " + id + " is being removed"};
    }
    return make_workspace(root, id, uid);
}

void workspace_claim::end() {
    const std::lock_guard lock(mutex_);
    over_ = true;
}

bool remove_workspace(const std::string& root, const std::string& id) {
    if (!is_plain_name(id)) {
        return false;
    }
    core::unique_fd top = open_root(root);
    if (!top) {
        return errno == ENOENT;
    }
    return remove_below(std::move(top), id);
}

void remove_empty_workspace(const std::string& root, const std::string& id) {
    core::unique_fd top = open_root(root);
    const core::unique_fd own(top && is_plain_name(id) ? ::openat(top.get(), id.c_str(), directory_only)
                                                       : -1);
    if (own && (::unlinkat(own.get(), "workspace", AT_REMOVEDIR) == 0 || errno == ENOENT)) {
        ::unlinkat(top.get(), id.c_str(), AT_REMOVEDIR);
    }
}

std::vector<std::pair<std::string, double>> list_workspaces(const std::string& root) {
    std::vector<std::pair<std::string, double>> found;
    core::unique_fd top = open_root(root);
    if (!top) {
        return found;
    }
    for_each_name(top.get(), [&found, &top](std::string name) {
        struct stat facts{};
        if (is_session_id(name) && ::fstatat(top.get(), name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISDIR(facts.st_mode)) {
            const auto& time = facts.st_mtim;
            found.emplace_back(std::move(name),
                               static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9);
        }
    });
    return found;
}

/// Moved aside first: a session that is opened meanwhile makes itself a new one and does not lose it.
bool sweep_workspace(const std::string& root, const std::string& id, const std::function<bool()>& in_use) {
    core::unique_fd top = open_root(root);
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
    return remove_below(std::move(top), aside);
}

void sweep_leftovers(const std::string& root) {
    const core::unique_fd top = open_root(root);
    if (!top) {
        return;
    }
    for_each_name(top.get(), [&root](const std::string& name) {
        if (name.starts_with(swept_prefix)) {
            remove_below(open_root(root), name);
        }
    });
}

} // namespace sandboxd::session::blocking
