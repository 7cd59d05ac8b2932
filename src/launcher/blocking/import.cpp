#include "launcher/blocking/files.hpp"
#include "launcher/blocking/image_names.hpp"
#include "launcher/blocking/images.hpp"
#include "launcher/blocking/scratch.hpp"
#include "launcher/blocking/unpack.hpp"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace sandboxd::launcher::blocking {

namespace {

constexpr const char* still_unpacked = "the image is still being unpacked";

error as_start_failure(error from) {
    from.code = errc::start_failed;
    return from;
}

error not_unpacked(const std::string& path) {
    return {errc::not_found, "the image of " + path + " is not unpacked yet"};
}

/// Unpacks one image of an OCI layout, once per digest however many ask at a time; progress goes to the log.
/// Answers its key.
result<std::string> import_layout(const worker_context& context, const std::string& layout,
                                  const std::string& tag, bool fetch, deadline until) {
    auto manifest = find_manifest(layout, tag);
    if (!manifest) {
        return manifest.error();
    }
    const auto images = context.options.state_dir + "/images";
    const auto key = "sha256-" + manifest->hex();
    const auto target = images + "/" + key;
    if (::access(target.c_str(), F_OK) == 0) {
        return key;
    }
    if (!fetch) {
        return not_unpacked(layout);
    }
    const auto lock_path = images + "/.lock-" + key;
    auto lock = lock_file(lock_path, until, still_unpacked);
    if (!lock) {
        return as_start_failure(lock.error());
    }
    if (::access(target.c_str(), F_OK) != 0) {
        scratch work(images);
        if (auto done = work.make(); !done) {
            return as_start_failure(done.error());
        }
        const image_tools tools(context, work.path());
        if (auto done = unpack(context, tools, {layout, layout, *manifest, target}, until); !done) {
            return as_start_failure(done.error());
        }
    }
    ::unlink(lock_path.c_str()); // who waits for it finds the image, whichever file it has locked
    return key;
}

/// The same for what `docker save` has written; known again by the file's identity, sizes and times.
result<std::string> import_docker_archive(const worker_context& context, const std::string& file, bool fetch,
                                          deadline until) {
    struct stat status{};
    if (::stat(file.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) {
        return error{errc::start_failed, "the image archive " + file + " is no file"};
    }
    const auto images = context.options.state_dir + "/images";
    const auto known = images + "/.archive-" + std::to_string(status.st_dev) + "-" +
                       std::to_string(status.st_ino) + "-" + std::to_string(status.st_size) + "-" +
                       std::to_string(status.st_mtim.tv_sec) + "." + std::to_string(status.st_mtim.tv_nsec) +
                       "-" + std::to_string(status.st_ctim.tv_sec) + "." +
                       std::to_string(status.st_ctim.tv_nsec);
    const auto find_known = [&]() -> std::optional<std::string> {
        const auto key = read_file(known, 128);
        return key && find_image(context, *key) ? std::optional(*key) : std::nullopt;
    };
    if (const auto key = find_known()) {
        return *key;
    }
    if (!fetch) {
        return not_unpacked(file);
    }
    const auto lock_path = known + ".lock";
    auto lock = lock_file(lock_path, until, still_unpacked);
    if (!lock) {
        return as_start_failure(lock.error());
    }
    if (const auto key = find_known()) {
        return *key;
    }
    scratch work(images);
    if (auto done = work.make(); !done) {
        return as_start_failure(done.error());
    }
    if (::symlink(file.c_str(), (work.path() + "/in.tar").c_str()) != 0) {
        return as_start_failure(os_error(work.path(), errno));
    }
    tool_call call;
    call.argv = {"skopeo", "copy", "--insecure-policy", "docker-archive:in.tar", "oci:saved:image"};
    if (auto done = image_tools(context, work.path()).run(std::move(call), until); !done) {
        return done.error();
    }
    auto key = import_layout(context, work.path() + "/saved", "image", true, until);
    if (key) {
        static_cast<void>(write_file_at(AT_FDCWD, known, *key, 0600));
    }
    ::unlink(lock_path.c_str());
    return key;
}

/// Unpacks what lies on this host; its name is known afterwards, so that it is not taken for forgotten.
result<std::string> import_file(const worker_context& context, const image_reference& from,
                                const import_image& request, deadline until) {
    const auto& state_dir = context.options.state_dir;
    const auto kept = lock_images(state_dir, until, true);
    if (!kept) {
        return as_start_failure(kept.error());
    }
    auto key = from.what == image_reference::kind::oci_layout
                   ? import_layout(context, from.path, from.tag, request.fetch, until)
                   : import_docker_archive(context, from.path, request.fetch, until);
    if (key) {
        if (auto done = put_image_name(state_dir, request.reference, *key, until); !done) {
            return as_start_failure(done.error());
        }
    }
    return key;
}

/// Names the image in what skopeo, umoci or its own bytes had to say.
error about(const std::string& reference, const image_reference& from, error failure) {
    if (failure.message.find(from.path) == std::string::npos) {
        failure.message = "the image '" + reference + "': " + failure.message;
    }
    return failure;
}

} // namespace

result<image_info> import(const worker_context& context, const import_image& request, deadline until) {
    auto reference = parse_image_reference(request.reference);
    if (!reference) {
        return reference.error();
    }
    using kind = image_reference::kind;
    result<std::string> key = "dir:" + reference->path;
    switch (reference->what) {
    case kind::host:
        key = make_host_image(context);
        break;
    case kind::oci_layout:
    case kind::docker_archive:
        key = import_file(context, *reference, request, until);
        break;
    case kind::registry:
        key = fetch_image(context, *reference, request, until);
        break;
    case kind::directory:
        if (const auto there = open_directory(reference->path); !there) {
            return error{errc::start_failed, "the image's directory " + there.error().message};
        }
        break;
    }
    if (!key) {
        return about(request.reference, *reference, key.error());
    }
    auto image = find_image(context, *key);
    if (!image) {
        return image.error();
    }
    return image_info{std::move(*key), encode_image_config(image->config)};
}

} // namespace sandboxd::launcher::blocking
