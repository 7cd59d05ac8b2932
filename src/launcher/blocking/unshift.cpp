#include "launcher/blocking/unshift.hpp"

#include "launcher/blocking/files.hpp"
#include "launcher/bundle_config.hpp"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace sandboxd::launcher::blocking {

namespace {

constexpr int deepest = 400; ///< one open directory for each level

class shifter {
public:
    shifter(std::uint32_t base, deadline until) : base_(base), until_(until) {}

    result<void> one(int parent, const std::string& name, int depth) {
        struct stat status{};
        if (::fstatat(parent, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
            return os_error(name, errno);
        }
        if (auto done = give(parent, name, status); !done || !S_ISDIR(status.st_mode)) {
            return done;
        }
        return inside(parent, name, depth);
    }

private:
    [[nodiscard]] std::uint32_t lowered(std::uint32_t id) const {
        return id >= base_ && id - base_ < ids_per_sandbox ? id - base_ : id;
    }

    [[nodiscard]] result<void> give(int parent, const std::string& name, const struct stat& status) const {
        const auto uid = lowered(status.st_uid);
        const auto gid = lowered(status.st_gid);
        if (uid == status.st_uid && gid == status.st_gid) {
            return {}; // a second name of a file that has had its turn
        }
        if (::fchownat(parent, name.c_str(), uid, gid, AT_SYMLINK_NOFOLLOW) != 0) {
            return os_error(name, errno);
        }
        const bool special = (status.st_mode & (S_ISUID | S_ISGID)) != 0 && !S_ISLNK(status.st_mode);
        if (special && ::fchmodat(parent, name.c_str(), status.st_mode & 07777, 0) != 0) {
            return os_error(name, errno);
        }
        return {};
    }

    result<void> inside(int parent, const std::string& name, int depth) {
        if (depth >= deepest) {
            return error{errc::start_failed,
                         "the image holds directories more than " + std::to_string(deepest) + " deep"};
        }
        if (std::chrono::steady_clock::now() >= until_) {
            return error{errc::start_failed, "the image could not be put away in time"};
        }
        const auto directory = open_directory_at(parent, name);
        auto names = directory ? list_directory(directory->get())
                               : result<std::vector<std::string>>(directory.error());
        if (!names) {
            return names.error();
        }
        for (const auto& entry : *names) {
            if (auto done = one(directory->get(), entry, depth + 1); !done) {
                return done;
            }
        }
        return {};
    }

    std::uint32_t base_;
    deadline until_;
};

} // namespace

result<void> unshift_tree(const std::string& path, std::uint32_t base, deadline until) {
    return shifter(base, until).one(AT_FDCWD, path, 0);
}

} // namespace sandboxd::launcher::blocking
