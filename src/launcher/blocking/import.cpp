#include "core/random.hpp"
#include "launcher/blocking/files.hpp"
#include "launcher/blocking/images.hpp"
#include "launcher/oci_index.hpp"

#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

namespace sandboxd::launcher::blocking {

namespace {

constexpr std::size_t max_json = 4 * 1024 * 1024;
constexpr auto lock_poll = std::chrono::milliseconds(50);
constexpr std::string_view temporary_prefix = ".new-";

error as_start_failure(error from) {
    from.code = errc::start_failed;
    return from;
}

/// A directory below images/ for one import, gone with its object unless it was kept.
class scratch {
public:
    explicit scratch(std::string images) : images_(std::move(images)), name_(".new-" + core::random_hex(8)) {}
    scratch(const scratch&) = delete;
    scratch& operator=(const scratch&) = delete;
    ~scratch() {
        if (const auto parent = open_directory(images_)) {
            static_cast<void>(remove_tree(parent->get(), name_));
        }
    }

    result<void> make() const {
        return ::mkdir(path().c_str(), 0700) == 0 ? result<void>() : os_error(path(), errno);
    }
    [[nodiscard]] std::string path() const { return images_ + "/" + name_; }

private:
    std::string images_;
    std::string name_;
};

/// Only one of those who ask for the same thing does it; the others wait.
result<core::unique_fd> lock_file(const std::string& path, deadline until) {
    core::unique_fd lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!lock) {
        return os_error(path, errno);
    }
    while (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
        if (std::chrono::steady_clock::now() >= until) {
            return error{errc::timeout, "the image is still being unpacked"};
        }
        std::this_thread::sleep_for(lock_poll);
    }
    return lock;
}

result<void> run_tool(const worker_context& context, std::vector<std::string> argv,
                      const std::string& directory, deadline until) {
    const char* path = std::getenv("PATH");
    child_program program;
    program.argv = std::move(argv);
    program.directory = directory;
    program.env = {{"PATH", path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin"},
                   {"HOME", directory},
                   {"TMPDIR", directory}};
    std::string last;
    const auto line = [&](std::string_view text) {
        last = text;
        context.progress(program.argv[0] + ": " + last);
    };
    auto end = run_child_lines(program, until, line);
    if (!end) {
        return as_start_failure(end.error());
    }
    if (end->timed_out) {
        return error{errc::start_failed, program.argv[0] + " did not end in time"};
    }
    if (end->exit_code != 0) {
        return error{errc::start_failed, program.argv[0] + " failed: " + last};
    }
    return {};
}

result<std::string> read_blob(const std::string& layout, const blob_descriptor& blob) {
    return read_file(layout + "/blobs/sha256/" + blob.hex(), max_json);
}

/// The manifest of an image for this machine.
result<blob_descriptor> find_manifest(const std::string& layout, const std::string& tag) {
    auto index = read_file(layout + "/index.json", max_json);
    if (!index) {
        return error{errc::start_failed, layout + " is no OCI image layout: " + index.error().message};
    }
    auto found = choose_by_tag(*index, tag);
    for (int depth = 0; found && found->is_index() && depth < 3; ++depth) {
        auto inner = read_blob(layout, *found);
        if (!inner) {
            return as_start_failure(inner.error());
        }
        found = choose_by_platform(*inner);
    }
    return found;
}

result<image_config> find_config(const std::string& layout, const blob_descriptor& manifest) {
    auto text = read_blob(layout, manifest);
    if (!text) {
        return as_start_failure(text.error());
    }
    auto blob = config_of_manifest(*text);
    if (!blob) {
        return blob.error();
    }
    auto config = read_blob(layout, *blob);
    if (!config) {
        return as_start_failure(config.error());
    }
    return parse_image_config(*config);
}

/// Shows the unpacker a layout of one image under a plain name, whatever the real one is called.
result<void> make_view(const std::string& directory, const std::string& layout,
                       const blob_descriptor& manifest) {
    const auto view = directory + "/layout";
    if (::mkdir(view.c_str(), 0700) != 0 ||
        ::symlink((layout + "/blobs").c_str(), (view + "/blobs").c_str()) != 0) {
        return os_error(view, errno);
    }
    if (auto done = write_file_at(AT_FDCWD, view + "/oci-layout", R"({"imageLayoutVersion":"1.0.0"})", 0600);
        !done) {
        return done;
    }
    return write_file_at(AT_FDCWD, view + "/index.json", index_of(manifest), 0600);
}

result<void> unpack(const worker_context& context, const std::string& layout, const blob_descriptor& manifest,
                    const std::string& target, deadline until) {
    auto config = find_config(layout, manifest);
    if (!config) {
        return config.error();
    }
    scratch work(context.options.state_dir + "/images");
    if (auto done = work.make(); !done) {
        return done;
    }
    if (auto done = make_view(work.path(), layout, manifest); !done) {
        return done;
    }
    const auto made = work.path() + "/image";
    if (::mkdir(made.c_str(), 0700) != 0) {
        return os_error(made, errno);
    }
    context.progress("unpacking image " + manifest.digest);
    auto done = run_tool(context, {"umoci", "raw", "unpack", "--image", "layout:image", "image/rootfs"},
                         work.path(), until);
    if (done) {
        done = write_file_at(AT_FDCWD, made + "/image.json", encode_image_config(*config), 0600);
    }
    if (done && ::rename(made.c_str(), target.c_str()) != 0) {
        done = os_error(target, errno);
    }
    return done;
}

} // namespace

result<std::string> import_layout(const worker_context& context, const std::string& layout,
                                  const std::string& tag, deadline until) {
    auto manifest = find_manifest(layout, tag);
    if (!manifest) {
        return manifest.error();
    }
    const auto key = "sha256-" + manifest->hex();
    const auto target = context.options.state_dir + "/images/" + key;
    if (::access(target.c_str(), F_OK) == 0) {
        return key;
    }
    const auto lock_path = context.options.state_dir + "/images/.lock-" + key;
    auto lock = lock_file(lock_path, until);
    if (!lock) {
        return as_start_failure(lock.error());
    }
    if (::access(target.c_str(), F_OK) != 0) {
        if (auto done = unpack(context, layout, *manifest, target, until); !done) {
            return done.error();
        }
    }
    ::unlink(lock_path.c_str()); // who waits for it finds the image, whichever file it has locked
    return key;
}

result<std::string> import_docker_archive(const worker_context& context, const std::string& file,
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
    const auto lock_path = known + ".lock";
    auto lock = lock_file(lock_path, until);
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
    auto done =
        run_tool(context, {"skopeo", "copy", "--insecure-policy", "docker-archive:in.tar", "oci:saved:image"},
                 work.path(), until);
    if (!done) {
        return done.error();
    }
    auto key = import_layout(context, work.path() + "/saved", "image", until);
    if (key) {
        static_cast<void>(write_file_at(AT_FDCWD, known, *key, 0600));
    }
    ::unlink(lock_path.c_str());
    return key;
}

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
        key = import_layout(context, reference->path, reference->tag, until);
        break;
    case kind::docker_archive:
        key = import_docker_archive(context, reference->path, until);
        break;
    case kind::directory:
        break;
    }
    return key ? result<image_info>(image_info{*key}) : result<image_info>(key.error());
}

void sweep_imports(const std::string& state_dir) {
    const auto images = open_directory(state_dir + "/images");
    const auto names = images ? list_directory(images->get()) : result<std::vector<std::string>>(error{});
    if (!names) {
        return;
    }
    for (const auto& name : *names) {
        if (std::string_view(name).substr(0, temporary_prefix.size()) == temporary_prefix) {
            static_cast<void>(remove_tree(images->get(), name));
        }
    }
}

} // namespace sandboxd::launcher::blocking
