#include "agent/tree_walk.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

namespace sandboxd::agent {

namespace {

constexpr std::size_t batch = 4096;
constexpr std::size_t most_levels = 20'000;
constexpr std::size_t most_waiting = 500'000;
constexpr std::size_t open_levels = 64;

} // namespace

int tree_walk::open(int at, const char* root) {
    if (const int failed = reader_.open(at, root, true)) {
        return failed;
    }
    return push(reader_.take(), {}) ? 0 : errno;
}

/// Goes into a directory that has been opened.
bool tree_walk::push(descriptor fd, std::string_view name) {
    struct stat status{};
    if (fstat(fd.get(), &status) != 0) {
        return false;
    }
    if (levels_.size() >= open_levels) {
        levels_.back().fd.reset();
    }
    path_.append(name);
    path_.append(name.empty() ? "" : "/");
    directory_ = fd.get();
    reader_.use(directory_);
    reading_ = true;
    auto& added = levels_.emplace_back();
    added.fd = std::move(fd);
    added.device = status.st_dev;
    added.inode = status.st_ino;
    added.path_size = path_.size();
    return true;
}

const std::string& tree_walk::path() {
    path_.resize(levels_.back().path_size);
    path_.append(name());
    return path_;
}

bool tree_walk::give_up() {
    incomplete_ = true;
    return false;
}

bool tree_walk::next() {
    for (;;) {
        if (call_.expired_now_and_then()) {
            return give_up();
        }
        if (file_at_ < files_.size()) {
            ++file_at_;
            return true;
        }
        if (reading_) {
            read_batch();
        } else if (!levels_.back().directories.empty()) {
            descend();
        } else if (levels_.size() == 1 || !ascend()) {
            return false;
        }
    }
}

void tree_walk::read_batch() {
    files_.clear();
    file_at_ = 0;
    directory_entry entry;
    while (files_.size() < batch && reading_) {
        reading_ = reader_.next(entry);
        if (reading_ && !(how_.ignore_hidden && entry.name.starts_with('.'))) {
            take(entry);
        }
        if (call_.expired_now_and_then()) {
            return;
        }
    }
    incomplete_ = incomplete_ || (reader_.error() != 0 && reader_.error() != ENOENT);
    if (how_.sorted) {
        std::sort(files_.begin(), files_.end());
        if (!reading_) {
            auto& names = levels_.back().directories;
            std::sort(names.begin(), names.end(), std::greater<>());
        }
    }
}

void tree_walk::take(const directory_entry& entry) {
    auto type = entry.type;
    struct stat status{};
    if (type == DT_UNKNOWN && fstatat(directory_, entry.name.data(), &status, AT_SYMLINK_NOFOLLOW) == 0) {
        type = S_ISREG(status.st_mode) ? DT_REG : S_ISDIR(status.st_mode) ? DT_DIR : DT_UNKNOWN;
    }
    if (type == DT_REG) {
        files_.emplace_back(entry.name);
    } else if (type == DT_DIR && waiting_ < most_waiting) {
        ++waiting_;
        levels_.back().directories.emplace_back(entry.name);
    } else if (type == DT_DIR) {
        incomplete_ = true;
    }
}

bool tree_walk::descend() {
    const std::string name = std::move(levels_.back().directories.back());
    levels_.back().directories.pop_back();
    --waiting_;
    path_.resize(levels_.back().path_size);
    if (levels_.size() == most_levels) {
        return give_up();
    }
    constexpr int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    descriptor fd(openat(directory_, name.c_str(), flags));
    if (fd.valid() && push(std::move(fd), name)) {
        return true;
    }
    const bool expected = errno == EACCES || errno == ENOENT || errno == ENOTDIR || errno == ELOOP;
    return expected || give_up();
}

/// Back to the directory above. Where it was closed it is opened again, and must still be the same.
bool tree_walk::ascend() {
    const descriptor below = std::move(levels_.back().fd);
    levels_.pop_back();
    auto& above = levels_.back();
    path_.resize(above.path_size);
    if (!above.fd.valid()) {
        above.fd.reset(openat(below.get(), "..", O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC));
        struct stat status{};
        if (!above.fd.valid() || fstat(above.fd.get(), &status) != 0 || status.st_dev != above.device ||
            status.st_ino != above.inode) {
            return give_up();
        }
    }
    directory_ = above.fd.get();
    return true;
}

} // namespace sandboxd::agent
