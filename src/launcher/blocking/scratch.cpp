#include "launcher/blocking/scratch.hpp"

#include "core/random.hpp"
#include "launcher/blocking/files.hpp"

#include <cerrno>
#include <string_view>
#include <sys/file.h>
#include <sys/stat.h>

namespace sandboxd::launcher::blocking {

namespace {

constexpr std::string_view temporary_prefix = ".new-";
constexpr int max_attempts = 20;

bool is_there(int opened, const std::string& path) {
    struct stat mine{};
    struct stat named{};
    return ::fstat(opened, &mine) == 0 && ::lstat(path.c_str(), &named) == 0 && mine.st_dev == named.st_dev &&
           mine.st_ino == named.st_ino;
}

} // namespace

scratch::scratch(std::string images) : images_(std::move(images)) {}

scratch::~scratch() {
    if (const auto parent = lock_ ? open_directory(images_) : result<core::unique_fd>(error{})) {
        static_cast<void>(remove_tree(parent->get(), name_));
    }
}

result<void> scratch::make() {
    // A sweep that comes between the making and the lock takes it for one that was left: then once more.
    for (int attempt = 0; attempt < max_attempts; ++attempt) {
        name_ = std::string(temporary_prefix) + core::random_hex(8);
        if (::mkdir(path().c_str(), 0700) != 0) {
            return os_error(path(), errno);
        }
        auto opened = open_directory(path());
        if (opened && ::flock(opened->get(), LOCK_EX | LOCK_NB) == 0 && is_there(opened->get(), path())) {
            lock_ = std::move(*opened);
            return {};
        }
    }
    return error{errc::internal, path() + ": removed again and again while it was made"};
}

void sweep_imports(const std::string& state_dir) {
    const auto images = open_directory(state_dir + "/images");
    const auto names = images ? list_directory(images->get()) : result<std::vector<std::string>>(error{});
    if (!names) {
        return;
    }
    for (const auto& name : *names) {
        if (std::string_view(name).substr(0, temporary_prefix.size()) != temporary_prefix) {
            continue;
        }
        const auto one = open_directory_at(images->get(), name);
        if (one && ::flock(one->get(), LOCK_EX | LOCK_NB) == 0) {
            static_cast<void>(remove_tree(images->get(), name));
        }
    }
}

} // namespace sandboxd::launcher::blocking
