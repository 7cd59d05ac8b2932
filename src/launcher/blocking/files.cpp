#include "launcher/blocking/files.hpp"

#include <cerrno>
#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <memory>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace sandboxd::launcher::blocking {

namespace {

error failed(const std::string& what) {
    auto made = os_error(what, errno);
    if (errno == ENOENT) {
        made.code = errc::not_found;
    }
    return made;
}

result<core::unique_fd> opened(int fd, const std::string& name) {
    if (fd < 0) {
        return failed(name);
    }
    return core::unique_fd(fd);
}

/// The components of a path, "." and empty ones left out.
std::vector<std::string> components(std::string_view path) {
    std::vector<std::string> parts;
    while (!path.empty()) {
        const auto end = std::min(path.find('/'), path.size());
        if (end != 0 && path.substr(0, end) != ".") {
            parts.emplace_back(path.substr(0, end));
        }
        path.remove_prefix(std::min(end + 1, path.size()));
    }
    return parts;
}

} // namespace

result<std::string> read_descriptor(int fd, const std::string& name, std::size_t max) {
    std::string bytes;
    char buffer[16 * 1024];
    while (true) {
        const auto count = ::read(fd, buffer, sizeof buffer);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0) {
            return failed(name);
        }
        if (count == 0) {
            return bytes;
        }
        bytes.append(buffer, static_cast<std::size_t>(count));
        if (bytes.size() > max) {
            return error{errc::invalid, name + ": more than " + std::to_string(max) + " bytes"};
        }
    }
}

result<std::string> read_file_at(int directory, const std::string& name, std::size_t max) {
    const core::unique_fd fd(::openat(directory, name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    if (!fd) {
        return failed(name);
    }
    struct stat status{};
    if (::fstat(fd.get(), &status) != 0) {
        return failed(name);
    }
    if (!S_ISREG(status.st_mode)) {
        return error{errc::invalid, name + ": not a regular file"};
    }
    return read_descriptor(fd.get(), name, max);
}

result<std::string> read_file(const std::string& path, std::size_t max) {
    return read_file_at(AT_FDCWD, path, max);
}

result<void> write_file_at(int directory, const std::string& name, std::string_view bytes, unsigned mode) {
    const std::string temporary = name + ".new";
    core::unique_fd fd(
        ::openat(directory, temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode));
    if (!fd) {
        return failed(temporary);
    }
    while (!bytes.empty()) {
        const auto count = ::write(fd.get(), bytes.data(), bytes.size());
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0) {
            return failed(temporary);
        }
        bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    if (::renameat(directory, temporary.c_str(), directory, name.c_str()) != 0) {
        return failed(name);
    }
    return {};
}

result<core::unique_fd> open_directory_at(int directory, const std::string& name) {
    return opened(::openat(directory, name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW), name);
}

result<core::unique_fd> open_directory(const std::string& path) {
    return opened(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC), path);
}

result<void> make_directories(const std::string& path, unsigned mode) {
    for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
        const auto part = path.substr(0, end);
        if (::mkdir(part.c_str(), mode) != 0 && errno != EEXIST) {
            return failed(part);
        }
        if (end == std::string::npos) {
            return {};
        }
    }
}

result<core::unique_fd> open_in_root(int root, const std::string& path, int flags, unsigned mode) {
    open_how how{};
    how.flags = static_cast<std::uint64_t>(flags | O_CLOEXEC);
    how.mode = (flags & O_CREAT) != 0 ? mode : 0;
    how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
    return opened(static_cast<int>(::syscall(SYS_openat2, root, path.c_str(), &how, sizeof how)), path);
}

result<core::unique_fd> make_directories_in_root(int root, std::string_view path, unsigned uid,
                                                 unsigned gid) {
    std::string so_far;
    core::unique_fd at(::dup(root));
    for (const auto& part : components(path)) {
        so_far += "/" + part;
        auto next = open_in_root(root, so_far, O_PATH | O_DIRECTORY);
        if (!next && next.error().code == errc::not_found) {
            if (::mkdirat(at.get(), part.c_str(), 0755) != 0 ||
                ::fchownat(at.get(), part.c_str(), uid, gid, AT_SYMLINK_NOFOLLOW) != 0) {
                return failed(so_far);
            }
            next = open_in_root(root, so_far, O_PATH | O_DIRECTORY);
        }
        if (!next) {
            return next.error();
        }
        at = std::move(*next);
    }
    return at;
}

result<std::vector<std::string>> list_directory(int directory) {
    const int copy = ::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const std::unique_ptr<DIR, int (*)(DIR*)> listing(copy < 0 ? nullptr : ::fdopendir(copy), &::closedir);
    if (!listing) {
        return failed("listing a directory");
    }
    std::vector<std::string> names;
    errno = 0;
    while (const auto* entry = ::readdir(listing.get())) {
        const std::string_view name = entry->d_name;
        if (name != "." && name != "..") {
            names.emplace_back(name);
        }
    }
    if (errno != 0) {
        return failed("listing a directory");
    }
    return names;
}

} // namespace sandboxd::launcher::blocking
