#include "hostfs/in_memory.hpp"

#include "hostfs/blocking/files.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <fcntl.h>
#include <functional>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string_view>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <utility>

namespace sandboxd::hostfs {

namespace {

constexpr std::uint64_t largest_content = 256 * 1024;
constexpr std::uint64_t largest_directory = 4096;
constexpr std::int64_t lately = 60;             // s
constexpr unsigned long xfs_magic = 0x58465342; // not in linux/magic.h
constexpr unsigned long zfs_magic = 0x2fc12fc1;

constexpr std::uint64_t no_links = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
constexpr std::uint64_t beneath = RESOLVE_BENEATH | RESOLVE_NO_XDEV | no_links;

/// The root that was learnt last.
struct known_root {
    std::string name;
    std::uint64_t device = 0; ///< 0 unless it is local
    bool no_disk = false;     ///< it is a tmpfs
    bool plain = false;       ///< its name is free of links
};
std::shared_mutex known_guard;
known_root known;

/// Directories listed lately: the upper bits of the key, and the second in the lower ones.
constexpr int second_bits = 24;
constexpr std::uint64_t second_mask = (1U << second_bits) - 1;
std::array<std::atomic<std::uint64_t>, 256> listed{};

std::uint64_t second_now() noexcept {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::seconds>(now).count()) &
           second_mask;
}

std::uint64_t hash_of(std::string_view text) noexcept {
    return std::hash<std::string_view>()(text);
}

std::uint64_t key_of(std::string_view root, std::string_view id, std::string_view relative) noexcept {
    constexpr std::uint64_t factor = 0x9E3779B97F4A7C15U;
    return ((hash_of(root) * factor) ^ hash_of(id)) * factor ^ hash_of(relative);
}

bool is_local(unsigned long magic) noexcept {
    constexpr std::array<unsigned long, 7> kinds{EXT4_SUPER_MAGIC,     xfs_magic,        BTRFS_SUPER_MAGIC,
                                                 TMPFS_MAGIC,          F2FS_SUPER_MAGIC, zfs_magic,
                                                 OVERLAYFS_SUPER_MAGIC};
    return std::ranges::find(kinds, magic) != kinds.end();
}

core::unique_fd open_cached(int directory, const char* path, std::uint64_t resolve) noexcept {
    struct open_how how{};
    how.flags = O_PATH | O_CLOEXEC;
    how.resolve = resolve | RESOLVE_CACHED;
    return core::unique_fd(static_cast<int>(::syscall(SYS_openat2, directory, path, &how, sizeof how)));
}

/// Without asking a server for anything newer.
bool examine(const core::unique_fd& handle, struct statx& out) noexcept {
    return handle &&
           ::statx(handle.get(), "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_SIZE, &out) == 0;
}

std::uint64_t device_of(const struct statx& about) noexcept {
    return makedev(about.stx_dev_major, about.stx_dev_minor);
}

/// Nothing for a root that isn't known, or is not local.
std::optional<known_root> local_root(const std::string& name) {
    const std::shared_lock reading(known_guard);
    return known.device != 0 && known.name == name ? std::optional(known) : std::nullopt;
}

core::unique_fd open_workspace(const known_root& root, const std::string& id) {
    const std::string relative = id + "/workspace";
    if (root.plain) {
        return open_cached(AT_FDCWD, (root.name + "/" + relative).c_str(), no_links);
    }
    const auto all = open_cached(AT_FDCWD, root.name.c_str(), 0); // wherever its links lead by now
    return all ? open_cached(all.get(), relative.c_str(), no_links) : core::unique_fd();
}

} // namespace

std::optional<cached_node> cached_node::find(const std::string& root, const std::string& id,
                                             const std::string& relative) {
    const auto where = local_root(root);
    if (!where || !is_plain_name(id)) {
        return std::nullopt;
    }
    cached_node out;
    out.handle_ = open_workspace(*where, id);
    if (out.handle_ && !relative.empty()) {
        out.handle_ = open_cached(out.handle_.get(), relative.c_str(), beneath);
    }
    // Nothing below the workspace is on another device, so this is the workspace's own too.
    struct statx about{};
    if (!examine(out.handle_, about) || device_of(about) != where->device ||
        (!S_ISDIR(about.stx_mode) && !S_ISREG(about.stx_mode))) {
        return std::nullopt;
    }
    out.directory_ = S_ISDIR(about.stx_mode);
    out.no_disk_ = where->no_disk;
    out.size_ = about.stx_size;
    out.key_ = key_of(root, id, relative);
    return out;
}

file_entry cached_node::entry(const native_path& path) const {
    return blocking::entry_of(path, directory_, size_);
}

native_result<std::vector<file_entry>> cached_node::entries(const native_path& path) const {
    return blocking::list_opened(handle_.get(), path, blocking::time_limit::max());
}

std::optional<std::string> cached_node::content(std::uint64_t max_bytes) const {
    if (directory_ || size_ > std::min(max_bytes, largest_content)) {
        return std::nullopt;
    }
    // Through the handle, which is known to be a regular file: by its name it could be a FIFO by now.
    const std::string same = "/proc/self/fd/" + std::to_string(handle_.get());
    const core::unique_fd file(::open(same.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
    if (!file) {
        return std::nullopt;
    }
    std::string all(size_ + 1, '\0'); // one byte more than there should be, to see the end
    struct iovec where{.iov_base = all.data(), .iov_len = all.size()};
    auto got = ::preadv2(file.get(), &where, 1, 0, RWF_NOWAIT);
    if (got < 0 && errno == EOPNOTSUPP && no_disk_) {
        got = ::preadv2(file.get(), &where, 1, 0, 0); // tmpfs has no such flag, and nothing to wait for
    }
    if (got < 0 || std::cmp_not_equal(got, size_)) {
        return std::nullopt;
    }
    all.resize(size_);
    return all;
}

bool cached_node::listed_lately() const noexcept {
    if (!directory_ || size_ > largest_directory) {
        return false;
    }
    const auto noted = listed[key_ % listed.size()].load();
    const auto age = (second_now() - noted) & second_mask;
    return (noted | second_mask) == (key_ | second_mask) && std::cmp_less(age, lately);
}

namespace blocking {

void learn_file_system(const std::string& root) {
    {
        const std::shared_lock reading(known_guard);
        if (known.name == root) {
            return;
        }
    }
    known_root found{.name = root};
    const std::unique_ptr<char, void (*)(void*)> real(::realpath(root.c_str(), nullptr), &std::free);
    struct stat about{};
    struct statfs kind{};
    if (real && ::stat(real.get(), &about) == 0 && ::statfs(real.get(), &kind) == 0 &&
        is_local(static_cast<unsigned long>(kind.f_type))) {
        found.plain = root == real.get();
        found.device = about.st_dev;
        found.no_disk = kind.f_type == TMPFS_MAGIC;
    }
    const std::unique_lock writing(known_guard);
    known = std::move(found);
}

void note_listed(const std::string& root, const std::string& id, const std::string& relative) noexcept {
    const auto key = key_of(root, id, relative);
    listed[key % listed.size()] = (key & ~second_mask) | second_now();
}

} // namespace blocking

} // namespace sandboxd::hostfs
