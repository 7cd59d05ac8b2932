#include "launcher/blocking/image_names.hpp"

#include "launcher/blocking/files.hpp"

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <cerrno>
#include <fcntl.h>
#include <functional>
#include <sys/file.h>
#include <thread>
#include <unistd.h>

namespace sandboxd::launcher::blocking {

namespace json = boost::json;

namespace {

constexpr std::size_t max_names = 16 * 1024 * 1024;
constexpr auto lock_poll = std::chrono::milliseconds(20);

std::string path_of(const std::string& state_dir) {
    return state_dir + "/images/names.json";
}

result<void> change(const std::string& state_dir, deadline until,
                    const std::function<void(image_map&)>& how) {
    const auto lock = lock_file(state_dir + "/images/.lock-names", until, "the names of images are in use");
    if (!lock) {
        return lock.error();
    }
    auto names = read_image_names(state_dir);
    how(names);
    json::object into;
    for (const auto& [reference, key] : names) {
        into[reference] = key;
    }
    return write_file_at(AT_FDCWD, path_of(state_dir), json::serialize(into), 0600);
}

} // namespace

result<core::unique_fd> lock_file(const std::string& path, deadline until, const std::string& busy,
                                  bool shared) {
    core::unique_fd lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!lock) {
        return os_error(path, errno);
    }
    while (::flock(lock.get(), (shared ? LOCK_SH : LOCK_EX) | LOCK_NB) != 0) {
        if (std::chrono::steady_clock::now() >= until) {
            return error{errc::timeout, busy};
        }
        std::this_thread::sleep_for(lock_poll);
    }
    return lock;
}

result<core::unique_fd> lock_images(const std::string& state_dir, deadline until, bool shared) {
    return lock_file(state_dir + "/images/.lock", until, "images are being removed", shared);
}

image_map read_image_names(const std::string& state_dir) {
    image_map names;
    const auto text = read_file(path_of(state_dir), max_names);
    boost::system::error_code failed;
    const auto value = text ? json::parse(*text, failed) : json::value();
    if (const auto* all = value.if_object(); all != nullptr && !failed) {
        for (const auto& one : *all) {
            if (const auto* key = one.value().if_string()) {
                names.emplace(std::string(one.key()), std::string(*key));
            }
        }
    }
    return names;
}

std::optional<std::string> find_image_name(const std::string& state_dir, const std::string& reference) {
    const auto names = read_image_names(state_dir);
    const auto found = names.find(reference);
    return found == names.end() ? std::nullopt : std::optional(found->second);
}

result<void> put_image_name(const std::string& state_dir, const std::string& reference,
                            const std::string& key, deadline until) {
    if (find_image_name(state_dir, reference) == key) {
        return {};
    }
    return change(state_dir, until, [&](image_map& names) { names[reference] = key; });
}

result<void> drop_image_names(const std::string& state_dir, const std::vector<std::string>& references,
                              deadline until) {
    return change(state_dir, until, [&](image_map& names) {
        for (const auto& one : references) {
            names.erase(one);
        }
    });
}

} // namespace sandboxd::launcher::blocking
