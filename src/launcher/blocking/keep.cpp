#include "core/random.hpp"
#include "launcher/blocking/files.hpp"
#include "launcher/blocking/image_names.hpp"
#include "launcher/blocking/images.hpp"
#include "launcher/blocking/scratch.hpp"
#include "launcher/blocking/unshift.hpp"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace sandboxd::launcher::blocking {

namespace {

error as_start_failure(error from) {
    from.code = errc::start_failed;
    return from;
}

/// What every start provides anew is none of the image's.
void drop_provided(const std::string& root) {
    const auto opened = open_directory(root);
    const auto etc = opened ? open_directory_at(opened->get(), "etc") : result<core::unique_fd>(error{});
    if (etc) {
        for (const char* name : {"hostname", "hosts", "resolv.conf"}) {
            ::unlinkat(etc->get(), name, 0);
        }
    }
}

/// The slot's layer as an image in `work`, with ids from 0.
result<void> take_layer(const slot_directory& held, const std::string& work, deadline until) {
    const int slot = held.directory.get();
    const auto base = read_uid_base(slot);
    if (!base || ::renameat(slot, "layer/upper", AT_FDCWD, (work + "/rootfs").c_str()) != 0) {
        return base ? os_error("the layer", errno) : error{errc::start_failed, "the slot has no layer"};
    }
    drop_provided(work + "/rootfs");
    return *base == 0 ? result<void>() : unshift_tree(work + "/rootfs", *base, until);
}

} // namespace

result<image_info> keep(const worker_context& context, const keep_image& request, deadline until) {
    const auto& state_dir = context.options.state_dir;
    const auto config = decode_image_config(request.config);
    if (!config) {
        return config.error();
    }
    auto held = lock_slot(context, request.slot, until);
    if (!held) {
        return as_start_failure(held.error());
    }
    const auto below = read_image_key(held->directory.get());
    if (!below) {
        return error{errc::start_failed, "the slot " + request.slot + " has no image"};
    }
    const auto kept = lock_images(state_dir, until, true);
    if (!kept) {
        return as_start_failure(kept.error());
    }
    scratch work(state_dir + "/images");
    auto done = work.make();
    if (done) {
        done = end_locked(context, request.slot, *held, until);
    }
    if (done) {
        done = take_layer(*held, work.path(), until);
    }
    if (done) {
        done = write_file_at(AT_FDCWD, work.path() + "/image.json", request.config, 0600);
    }
    std::string all = *below + "\n";
    for (const auto& one : images_below(state_dir, *below)) {
        all += one + "\n";
    }
    if (done) {
        done = write_file_at(AT_FDCWD, work.path() + "/below", all, 0600);
    }
    if (done) {
        if (const auto opened = open_directory(work.path())) {
            ::syncfs(opened->get());
        }
        const auto key = "built-" + core::random_hex(16);
        const auto target = state_dir + "/images/" + key;
        if (::rename(work.path().c_str(), target.c_str()) != 0) {
            return as_start_failure(os_error(target, errno));
        }
        done = put_image_name(state_dir, request.reference, key, until);
        if (done) {
            done = remove_locked(context, request.slot, *held, until);
        }
        if (done) {
            return image_info{key, request.config};
        }
    }
    return as_start_failure(done.error());
}

} // namespace sandboxd::launcher::blocking
