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

} // namespace

scratch::scratch(std::string images)
    : images_(std::move(images)), name_(std::string(temporary_prefix) + core::random_hex(8)) {}

scratch::~scratch() {
    if (const auto parent = open_directory(images_)) {
        static_cast<void>(remove_tree(parent->get(), name_));
    }
}

result<void> scratch::make() {
    if (::mkdir(path().c_str(), 0700) != 0) {
        return os_error(path(), errno);
    }
    auto opened = open_directory(path());
    if (!opened) {
        return opened.error();
    }
    lock_ = std::move(*opened);
    // Nobody else has it: a sweep that came in between has removed the directory, and the next step fails.
    return ::flock(lock_.get(), LOCK_EX | LOCK_NB) == 0 ? result<void>() : os_error(path(), errno);
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
