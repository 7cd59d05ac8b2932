#include "launcher/blocking/files.hpp"
#include "launcher/blocking/images.hpp"
#include "launcher/blocking/mounts.hpp"
#include "launcher/blocking/scratch.hpp"

#include "core/random.hpp"

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace sandboxd::launcher::blocking {

namespace {

constexpr std::size_t max_file = 8 * 1024 * 1024;
constexpr int max_depth = 4;

constexpr std::array system_directories{"usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32"};

struct made_directory {
    const char* path;
    unsigned mode;
};
constexpr made_directory directories[] = {
    {"dev", 0755},       {"etc", 0755},     {"etc/ssl", 0755}, {"home", 0755},     {"media", 0755},
    {"mnt", 0755},       {"opt", 0755},     {"proc", 0755},    {"root", 0700},     {"run", 0755},
    {"run/lock", 01777}, {"srv", 0755},     {"sys", 0755},     {"tmp", 01777},     {"var", 0755},
    {"var/cache", 0755}, {"var/lib", 0755}, {"var/log", 0755}, {"var/tmp", 01777},
};

struct made_file {
    const char* path;
    const char* text;
};
constexpr made_file files[] = {
    {"etc/passwd", "root:x:0:0:root:/root:/bin/sh\n"
                   "daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n"
                   "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"},
    {"etc/group", "root:x:0:\ndaemon:x:1:\ntty:x:5:\nnogroup:x:65534:\n"},
    {"etc/nsswitch.conf", "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nnetworks: files\n"
                          "protocols: files\nservices: files\n"},
    {"etc/shells", "/bin/sh\n/bin/bash\n"},
    {"etc/resolv.conf", ""},
};

/// What programs look for below /etc and what says nothing about this host: library paths, certificates of
/// public authorities, time zone, tables of names. Files that not everybody may read are never copied.
constexpr std::array copied{
    "alternatives",    "debian_version", "fonts",      "gai.conf",     "java-11-openjdk", "java-17-openjdk",
    "java-21-openjdk", "ld.so.cache",    "ld.so.conf", "ld.so.conf.d", "localtime",       "magic",
    "mime.types",      "os-release",     "perl",       "protocols",    "python3",         "python3.11",
    "python3.12",      "python3.13",     "services",   "ssl/certs",    "ssl/openssl.cnf", "timezone"};

/// Copies trees of small readable files, and sums up what it has copied.
class copier {
public:
    [[nodiscard]] std::string sum() const {
        std::array<unsigned char, sizeof sum_> bytes{};
        for (std::size_t i = 0; i < bytes.size(); ++i) {
            bytes[i] = static_cast<unsigned char>(sum_ >> (8 * i));
        }
        return core::to_hex(bytes);
    }

    void add(std::string_view bytes) {
        for (const char c : bytes) { // FNV-1a: names a version, protects nothing
            sum_ = (sum_ ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
        }
    }

    result<void> write(int into, const std::string& name, std::string_view bytes) {
        add(name);
        add(bytes);
        return write_file_at(into, name, bytes, 0644);
    }

    /// What can't be read by everybody, or is no file, directory or link, is left out.
    result<void> copy(int from, int into, const std::string& name, int depth) {
        struct stat status{};
        if (::fstatat(from, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
            return {};
        }
        if (S_ISLNK(status.st_mode)) {
            return copy_link(from, into, name);
        }
        if (S_ISREG(status.st_mode) && (status.st_mode & S_IROTH) != 0) {
            auto bytes = read_file_at(from, name, max_file);
            return bytes ? write(into, name, *bytes) : result<void>();
        }
        if (S_ISDIR(status.st_mode) && (status.st_mode & S_IROTH) != 0 && depth < max_depth) {
            return copy_directory(from, into, name, depth);
        }
        return {};
    }

private:
    result<void> copy_link(int from, int into, const std::string& name) {
        std::array<char, 4096> target{};
        const auto length = ::readlinkat(from, name.c_str(), target.data(), target.size() - 1);
        if (length <= 0) {
            return {};
        }
        add(name);
        add({target.data(), static_cast<std::size_t>(length)});
        return ::symlinkat(target.data(), into, name.c_str()) == 0 ? result<void>() : os_error(name, errno);
    }

    result<void> copy_directory(int from, int into, const std::string& name, int depth) {
        if (::mkdirat(into, name.c_str(), 0755) != 0 && errno != EEXIST) {
            return os_error(name, errno);
        }
        auto inner_from = open_directory_at(from, name);
        auto inner_into = open_directory_at(into, name);
        auto names =
            inner_from ? list_directory(inner_from->get()) : result<std::vector<std::string>>(error{});
        if (!inner_into || !names) {
            return inner_into ? result<void>() : inner_into.error();
        }
        std::sort(names->begin(), names->end());
        for (const auto& one : *names) {
            if (auto done = copy(inner_from->get(), inner_into->get(), one, depth + 1); !done) {
                return done;
            }
        }
        return {};
    }

    std::uint64_t sum_ = 0xcbf29ce484222325ULL;
};

/// bin, lib and so on: links as on the host, or empty directories for its own to be mounted on.
result<void> make_system_directories(int root, copier& copies) {
    const core::unique_fd host(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
    for (const char* name : system_directories) {
        struct stat status{};
        if (::fstatat(host.get(), name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
            continue;
        }
        if (S_ISLNK(status.st_mode)) {
            if (auto done = copies.copy(host.get(), root, name, 0); !done) {
                return done;
            }
        } else if (::mkdirat(root, name, 0755) != 0) {
            return os_error(name, errno);
        }
    }
    return {};
}

result<void> make_etc(int root, copier& copies) {
    for (const auto& file : files) {
        if (auto done = copies.write(root, file.path, file.text); !done) {
            return done;
        }
    }
    const core::unique_fd from(::open("/etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    auto into = open_directory_at(root, "etc");
    if (!into) {
        return into.error();
    }
    for (const std::string name : copied) {
        const auto slash = name.find('/');
        if (slash == std::string::npos) {
            if (auto done = copies.copy(from.get(), into->get(), name, 0); !done) {
                return done;
            }
            continue;
        }
        auto inner_from = open_directory_at(from.get(), name.substr(0, slash));
        auto inner_into = open_directory_at(into->get(), name.substr(0, slash));
        if (inner_from && inner_into) {
            if (auto done = copies.copy(inner_from->get(), inner_into->get(), name.substr(slash + 1), 1);
                !done) {
                return done;
            }
        }
    }
    return {};
}

result<std::string> make_skeleton(int root) {
    copier copies;
    for (const auto& one : directories) {
        if (::mkdirat(root, one.path, one.mode) != 0 || ::fchmodat(root, one.path, one.mode, 0) != 0) {
            return os_error(one.path, errno);
        }
        copies.add(one.path);
    }
    if (::symlinkat("/run", root, "var/run") != 0 || ::symlinkat("/run/lock", root, "var/lock") != 0) {
        return os_error("var/run", errno);
    }
    if (auto done = make_system_directories(root, copies); !done) {
        return done.error();
    }
    if (auto done = make_etc(root, copies); !done) {
        return done.error();
    }
    return copies.sum();
}

} // namespace

result<std::string> make_host_image(const worker_context& context) {
    const auto images = context.options.state_dir + "/images";
    if (auto made = make_directories(images, 0700); !made) {
        return made.error();
    }
    auto parent = open_directory(images);
    if (!parent) {
        return parent.error();
    }
    scratch work(images);
    if (auto made = work.make(); !made) {
        return made.error();
    }
    const auto rootfs = work.path() + "/rootfs";
    if (::mkdir(rootfs.c_str(), 0755) != 0) {
        return os_error(images, errno);
    }
    auto root = open_directory(rootfs);
    auto sum = root ? make_skeleton(root->get()) : result<std::string>(root.error());
    if (!sum) {
        return sum.error();
    }
    const auto key = "host-" + *sum;
    if (::renameat(AT_FDCWD, work.path().c_str(), parent->get(), key.c_str()) == 0) {
        return key;
    }
    const int failure = errno; // another import may have made the same image meanwhile
    if (failure != EEXIST && failure != ENOTEMPTY) {
        return os_error(images + "/" + key, failure);
    }
    return key;
}

result<void> mount_host_directories(int root) {
    const core::unique_fd host(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
    for (const std::string name : system_directories) {
        struct stat status{};
        if (::fstatat(host.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISDIR(status.st_mode)) {
            continue;
        }
        const core::unique_fd source(::openat(host.get(), name.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
        auto target = open_in_root(root, name, O_PATH | O_DIRECTORY | O_NOFOLLOW);
        if (!target) {
            return target.error();
        }
        clone_options options;
        options.recursive = true;
        options.read_only = true;
        auto copy = clone_mount(source.get(), "/" + name, options);
        if (!copy) {
            return copy.error();
        }
        if (auto done = attach_mount(copy->get(), target->get(), "/" + name); !done) {
            return done;
        }
    }
    return {};
}

} // namespace sandboxd::launcher::blocking
