#include "launcher/blocking/files.hpp"
#include "launcher/blocking/image_names.hpp"
#include "launcher/blocking/images.hpp"
#include "launcher/blocking/scratch.hpp"

#include <algorithm>
#include <fcntl.h>
#include <set>
#include <sys/file.h>
#include <unistd.h>

namespace sandboxd::launcher::blocking {

namespace {

/// A fetch may last; what is left then goes the next time.
constexpr auto lock_patience = std::chrono::seconds(5);

/// Everything below images/ that a name or a slot stands on. Nothing when a slot does not say what it stands
/// on (one of an earlier release): then nothing may go.
std::optional<std::set<std::string>> images_in_use(const std::string& state_dir) {
    std::set<std::string> used;
    const auto use = [&](const std::string& key) {
        used.insert(key);
        for (auto& one : images_below(state_dir, key)) {
            used.insert(std::move(one));
        }
    };
    for (const auto& [name, key] : read_image_names(state_dir)) {
        use(key);
    }
    const auto slots = open_directory(state_dir + "/oci");
    const auto names = slots ? list_directory(slots->get()) : result<std::vector<std::string>>(error{});
    if (!names) {
        return std::nullopt;
    }
    for (const auto& name : *names) {
        const auto slot = open_directory_at(slots->get(), name);
        if (!slot) {
            continue; // gone meanwhile
        }
        const auto key = read_image_key(slot->get());
        if (!key && ::faccessat(slot->get(), "layer", F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
            return std::nullopt;
        }
        if (key) {
            use(*key);
        }
    }
    return used;
}

/// Notes of archives whose image is gone, and lock files that nobody holds.
void remove_notes(int images, const std::vector<std::string>& names) {
    for (const auto& name : names) {
        const bool lock = name.substr(0, 6) == ".lock-" || (name.size() > 5 && name.ends_with(".lock"));
        if (lock && name != ".lock-names") {
            const core::unique_fd file(::openat(images, name.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
            if (file && ::flock(file.get(), LOCK_EX | LOCK_NB) == 0) {
                ::unlinkat(images, name.c_str(), 0);
            }
        } else if (name.substr(0, 9) == ".archive-") {
            const auto key = read_file_at(images, name, 128);
            if (key && is_stored_key(*key) && ::faccessat(images, key->c_str(), F_OK, 0) != 0) {
                ::unlinkat(images, name.c_str(), 0);
            }
        }
    }
}

/// Drops the names and renames what nothing stands on any more; answers what it is called now.
result<std::vector<std::string>> take_away(const worker_context& context, const forget_images& request,
                                           deadline until) {
    const auto& state_dir = context.options.state_dir;
    std::vector<std::string> gone;
    const auto patience = std::min(until, std::chrono::steady_clock::now() + lock_patience);
    const auto alone = lock_images(state_dir, patience, false);
    if (!alone) {
        return alone.error();
    }
    if (!request.references.empty()) {
        if (auto done = drop_image_names(state_dir, request.references, until); !done) {
            return done.error();
        }
    }
    const auto used = images_in_use(state_dir);
    const auto images = open_directory(state_dir + "/images");
    const auto names = images ? list_directory(images->get()) : result<std::vector<std::string>>(error{});
    if (!used || !names) {
        return gone;
    }
    for (const auto& name : *names) {
        const bool ours = is_stored_key(name) && name.substr(0, 5) != "host-";
        if (ours && used->count(name) == 0) {
            context.progress("removing image " + name + ", which nothing names or uses any more");
            // What is half removed must not be taken for an image.
            auto going = ".new-" + name;
            if (::renameat(images->get(), name.c_str(), images->get(), going.c_str()) == 0) {
                gone.push_back(std::move(going));
            }
        }
    }
    remove_notes(images->get(), *names);
    return gone;
}

} // namespace

result<image_names> list_names(const worker_context& context, const list_images& request) {
    image_names answer;
    for (const auto& [name, key] : read_image_names(context.options.state_dir)) {
        if (name > request.after && answer.references.size() < images_page) {
            answer.references.push_back(name);
        }
    }
    return answer;
}

result<void> forget(const worker_context& context, const forget_images& request, deadline until) {
    const auto& state_dir = context.options.state_dir;
    sweep_imports(state_dir);
    auto going = take_away(context, request, until);
    if (!going) {
        return going.error();
    }
    // Not under the lock: starts wait for it.
    const auto images = open_directory(state_dir + "/images");
    for (const auto& name : *going) {
        if (images) {
            static_cast<void>(remove_tree(images->get(), name));
        }
    }
    return {};
}

} // namespace sandboxd::launcher::blocking
