#include "launcher/blocking/files.hpp"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace sandboxd::launcher::blocking {

namespace {

error failed(const std::string& name) {
    return os_error("removing " + name, errno);
}

bool is_directory(int at, const char* name) {
    struct stat status{};
    return ::fstatat(at, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(status.st_mode);
}

/// Unlinks the files of `top/name` and moves its directories up into `top`, so that a tree of any depth
/// (deeper than a path or the descriptors of a process reach) is a flat list in the end.
class flattener {
public:
    explicit flattener(int top) : top_(top) {}

    result<void> empty(const std::string& name) {
        auto inside = open_directory_at(top_, name);
        if (!inside) {
            return inside.error();
        }
        auto names = list_directory(inside->get());
        if (!names) {
            return names.error();
        }
        for (const auto& one : *names) {
            if (auto gone = take(inside->get(), one); !gone) {
                return gone;
            }
        }
        return {};
    }

private:
    result<void> take(int inside, const std::string& name) {
        if (::unlinkat(inside, name.c_str(), 0) == 0 || errno == ENOENT) {
            return {};
        }
        if (errno != EISDIR && errno != EPERM) {
            return failed(name);
        }
        if (::unlinkat(inside, name.c_str(), AT_REMOVEDIR) == 0) {
            return {};
        }
        while (is_directory(inside, name.c_str())) {
            const std::string lifted = ".lifted-" + std::to_string(next_++);
            if (::renameat(inside, name.c_str(), top_, lifted.c_str()) == 0) {
                return {};
            }
            if (errno != EEXIST && errno != ENOTEMPTY && errno != ENOTDIR) {
                break; // else the tree holds that name itself
            }
        }
        return failed(name);
    }

    int top_;
    unsigned long next_ = 0;
};

result<void> empty_directory(int top) {
    flattener work(top);
    while (true) {
        auto names = list_directory(top);
        if (!names) {
            return names.error();
        }
        if (names->empty()) {
            return {};
        }
        for (const auto& name : *names) {
            if (!is_directory(top, name.c_str())) {
                if (::unlinkat(top, name.c_str(), 0) != 0 && errno != ENOENT) {
                    return failed(name);
                }
                continue;
            }
            if (auto done = work.empty(name); !done) {
                return done;
            }
            if (::unlinkat(top, name.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT) {
                return failed(name);
            }
        }
    }
}

} // namespace

result<void> remove_tree(int directory, const std::string& name) {
    if (!is_directory(directory, name.c_str())) {
        if (::unlinkat(directory, name.c_str(), 0) != 0 && errno != ENOENT) {
            return failed(name);
        }
        return {};
    }
    auto top = open_directory_at(directory, name);
    if (!top) {
        return top.error();
    }
    if (auto done = empty_directory(top->get()); !done) {
        return done;
    }
    if (::unlinkat(directory, name.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT) {
        return failed(name);
    }
    return {};
}

} // namespace sandboxd::launcher::blocking
