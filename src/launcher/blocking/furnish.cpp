#include "launcher/blocking/furnish.hpp"

#include "launcher/blocking/files.hpp"
#include "launcher/bundle_config.hpp"

#include <cerrno>
#include <fcntl.h>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

namespace sandboxd::launcher::blocking {

namespace {

constexpr std::size_t max_accounts_file = 4 * 1024 * 1024;

/// A text of the image, "" when it is missing, odd or too long.
std::string text_in_root(int root, const std::string& path) {
    const auto fd = open_in_root(root, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
    struct stat status{};
    if (!fd || ::fstat(fd->get(), &status) != 0 || !S_ISREG(status.st_mode)) {
        return {};
    }
    auto text = read_descriptor(fd->get(), path, max_accounts_file);
    return text ? std::move(*text) : std::string();
}

/// Writes a file of /etc that the engines provide, unless the image has one with something in it.
result<void> provide(int root, std::uint32_t uid_base, const char* name, const std::string& text) {
    auto etc = make_directories_in_root(root, "etc", uid_base, uid_base);
    if (!etc) {
        return etc.error();
    }
    const auto fd =
        open_in_root(etc->get(), name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0644);
    struct stat status{};
    if (!fd || ::fstat(fd->get(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_size != 0) {
        return {}; // a link or something else of the image's own
    }
    if (::fchown(fd->get(), uid_base, uid_base) != 0 || ::fchmod(fd->get(), 0644) != 0 ||
        ::write(fd->get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
        return os_error(std::string("/etc/") + name, errno);
    }
    return {};
}

/// True below the file systems that the runtime mounts over the root.
bool is_mounted_over(std::string_view path) {
    for (const std::string_view top : {"/tmp", "/dev", "/proc", "/sys"}) {
        if (path.substr(0, top.size()) == top && (path.size() == top.size() || path[top.size()] == '/')) {
            return true;
        }
    }
    return false;
}

} // namespace

result<void> check_accounts(int root) {
    const auto etc = open_in_root(root, "/etc", O_PATH | O_DIRECTORY);
    for (const std::string name : {"passwd", "group"}) {
        struct stat status{};
        if (!etc || ::fstatat(etc->get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
            continue; // there may be none
        }
        const auto file = open_in_root(root, "/etc/" + name, O_PATH);
        if (!file || ::fstat(file->get(), &status) != 0 || !S_ISREG(status.st_mode)) {
            return error{errc::start_failed, "the image's /etc/" + name + " is no file"};
        }
    }
    return {};
}

result<identity> find_identity(int root, const start_sandbox& request, const image_config& image) {
    const auto passwd = text_in_root(root, "/etc/passwd");
    if (request.uid) {
        return identity{account{*request.uid, *request.uid}, home_of(*request.uid, passwd)};
    }
    if (image.user.empty()) {
        return identity{std::nullopt, home_of(0, passwd)};
    }
    const auto found = resolve_user(image.user, passwd, text_in_root(root, "/etc/group"));
    if (!found) {
        return found.error();
    }
    if (found->ids.uid >= ids_per_sandbox || found->ids.gid >= ids_per_sandbox) {
        return error{errc::start_failed,
                     "the image's user '" + image.user + "' is beyond the 65536 ids of a sandbox"};
    }
    return identity{found->ids == account{} ? std::nullopt : std::optional(found->ids), found->home};
}

result<void> furnish_root(int root, std::uint32_t uid_base, const identity& who, const std::string& work_dir,
                          const std::string& hostname) {
    const auto owner = who.user.value_or(account{});
    if (!is_mounted_over(work_dir)) {
        auto made = make_directories_in_root(root, work_dir, uid_base + owner.uid, uid_base + owner.gid);
        if (!made) {
            return error{made.error().code, "the work directory " + work_dir + ": " + made.error().message};
        }
    }
    if (auto done = provide(root, uid_base, "hostname", hostname + "\n"); !done) {
        return done;
    }
    return provide(root, uid_base, "hosts",
                   "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n127.0.1.1\t" + hostname +
                       "\n");
}

} // namespace sandboxd::launcher::blocking
