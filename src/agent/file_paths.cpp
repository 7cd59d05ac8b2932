#include "agent/file_paths.hpp"

#include <fcntl.h>

#include <cerrno>
#include <climits>

namespace sandboxd::agent {

namespace {

constexpr int open_path = O_PATH | O_DIRECTORY | O_CLOEXEC;
constexpr std::size_t longest_piece = PATH_MAX - 1;
constexpr int most_links = 40;

/// Opens `path`, a short one, as a directory below `at`.
int descend(int at, const std::string& path, descriptor& out) {
    descriptor next(openat(at, path.c_str(), open_path));
    if (!next.valid()) {
        return errno;
    }
    out = std::move(next);
    return 0;
}

/// Takes the first component with the slashes behind it off the front; slashes at the very front come alone.
std::string first_component(std::string_view& path) {
    const auto slash = path.find('/');
    const auto name = path.substr(0, slash == 0 ? 1 : slash);
    path.remove_prefix(name.size());
    path.remove_prefix(std::min(path.find_first_not_of('/'), path.size()));
    return std::string(name);
}

int read_link(int at, const std::string& name, std::string& out) {
    char text[PATH_MAX];
    const auto count = readlinkat(at, name.c_str(), text, sizeof text);
    if (count < 0) {
        return errno;
    }
    if (count == sizeof text) {
        return ENAMETOOLONG;
    }
    out.assign(text, static_cast<std::size_t>(count));
    return 0;
}

} // namespace

int located::at() const {
    return directory.valid() ? directory.get() : AT_FDCWD;
}

int locate(std::string_view path, located& out) {
    if (path.empty()) {
        return ENOENT;
    }
    while (path.size() > longest_piece) {
        const auto slash = path.rfind('/', longest_piece - 1);
        if (slash == std::string_view::npos) {
            return ENAMETOOLONG;
        }
        if (const int failed = descend(out.at(), std::string(path.substr(0, slash + 1)), out.directory)) {
            return failed;
        }
        path.remove_prefix(slash + 1);
        path.remove_prefix(std::min(path.find_first_not_of('/'), path.size()));
    }
    out.rest = path.empty() ? "." : std::string(path);
    return 0;
}

split_path split(std::string_view path) {
    const auto slash = path.rfind('/');
    if (slash == std::string_view::npos) {
        return {".", path};
    }
    return {slash == 0 ? "/" : path.substr(0, slash), path.substr(slash + 1)};
}

int open_directory(std::string_view path, descriptor& out) {
    located where;
    if (const int failed = locate(path, where)) {
        return failed;
    }
    return descend(where.at(), where.rest, out);
}

int make_directory(std::string_view path, descriptor& out) {
    const int failed = open_directory(path, out);
    if (failed != ENOENT) {
        return failed;
    }
    descriptor at;
    while (!path.empty()) {
        const auto name = first_component(path);
        const int from = at.valid() ? at.get() : AT_FDCWD;
        int wrong = descend(from, name, at);
        if (wrong == ENOENT) {
            wrong = mkdirat(from, name.c_str(), 0755) == 0 || errno == EEXIST ? 0 : errno;
            wrong = wrong != 0 ? wrong : descend(from, name, at);
        }
        if (wrong != 0) {
            return wrong;
        }
    }
    out = std::move(at);
    return 0;
}

int open_regular(const located& where, descriptor& out, struct stat& status) {
    if (fstatat(where.at(), where.rest.c_str(), &status, 0) != 0) {
        return errno;
    }
    if (S_ISREG(status.st_mode)) {
        out.reset(openat(where.at(), where.rest.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
        if (!out.valid() || fstat(out.get(), &status) != 0) {
            return errno;
        }
    }
    return S_ISREG(status.st_mode) ? 0 : S_ISDIR(status.st_mode) ? EISDIR : -1;
}

int find_target(descriptor directory, std::string name, target& out) {
    for (int links = 0; links <= most_links; ++links) {
        if (name.empty() || name == "." || name == "..") {
            return EISDIR;
        }
        out.exists = fstatat(directory.get(), name.c_str(), &out.status, AT_SYMLINK_NOFOLLOW) == 0;
        if (!out.exists && errno != ENOENT) {
            return errno;
        }
        if (!out.exists || !S_ISLNK(out.status.st_mode)) {
            out.directory = std::move(directory);
            out.name = std::move(name);
            const bool good = !out.exists || S_ISREG(out.status.st_mode);
            return good ? 0 : S_ISDIR(out.status.st_mode) ? EISDIR : -1;
        }
        std::string text;
        if (const int failed = read_link(directory.get(), name, text)) {
            return failed;
        }
        const auto parts = split(text);
        if (const int failed = descend(directory.get(), std::string(parts.directory), directory)) {
            return failed;
        }
        name = parts.name;
    }
    return ELOOP;
}

std::string_view not_a_file(mode_t mode) {
    switch (mode & S_IFMT) {
    case S_IFIFO:
        return "It is a FIFO, not a file";
    case S_IFSOCK:
        return "It is a socket, not a file";
    case S_IFCHR:
    case S_IFBLK:
        return "It is a device, not a file";
    default:
        return "It is not a file";
    }
}

ssize_t read_fully(int fd, char* to, std::size_t size) {
    std::size_t done = 0;
    while (done < size) {
        const auto count = read(fd, to + done, size - done);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0) {
            return -1;
        }
        if (count == 0) {
            break;
        }
        done += static_cast<std::size_t>(count);
    }
    return static_cast<ssize_t>(done);
}

int write_fully(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
        const auto count = write(fd, bytes.data(), bytes.size());
        if (count < 0 && errno != EINTR) {
            return errno;
        }
        if (count == 0) {
            return EIO;
        }
        bytes.remove_prefix(count > 0 ? static_cast<std::size_t>(count) : 0);
    }
    return 0;
}

} // namespace sandboxd::agent
