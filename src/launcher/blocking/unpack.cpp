#include "launcher/blocking/unpack.hpp"

#include "launcher/blocking/files.hpp"
#include "launcher/image_config.hpp"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace sandboxd::launcher::blocking {

namespace {

constexpr std::size_t max_json = 4 * 1024 * 1024;

error as_start_failure(error from) {
    from.code = errc::start_failed;
    return from;
}

result<std::string> read_blob(const std::string& layout, const blob_descriptor& blob) {
    return read_file(layout + "/blobs/sha256/" + blob.hex(), max_json);
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
result<void> make_view(const std::string& directory, const unpacking& what) {
    const auto view = directory + "/layout";
    if (::mkdir(view.c_str(), 0700) != 0 ||
        ::symlink((what.seen + "/blobs").c_str(), (view + "/blobs").c_str()) != 0) {
        return os_error(view, errno);
    }
    if (auto done = write_file_at(AT_FDCWD, view + "/oci-layout", R"({"imageLayoutVersion":"1.0.0"})", 0600);
        !done) {
        return done;
    }
    return write_file_at(AT_FDCWD, view + "/index.json", index_of(what.manifest), 0600);
}

} // namespace

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

result<void> unpack(const worker_context& context, const image_tools& tools, const unpacking& what,
                    deadline until) {
    auto config = find_config(what.layout, what.manifest);
    if (!config) {
        return config.error();
    }
    const auto& directory = tools.directory();
    if (auto done = make_view(directory, what); !done) {
        return done;
    }
    const auto made = directory + "/image";
    if (::mkdir(made.c_str(), 0700) != 0) {
        return os_error(made, errno);
    }
    context.progress("unpacking image " + what.manifest.digest);
    tool_call call;
    call.argv = {"umoci", "raw", "unpack", "--image", "layout:image", "image/rootfs"};
    auto done = tools.run(std::move(call), until);
    if (!done) {
        return done;
    }
    const auto area = open_directory(directory);
    const auto image = area ? open_directory_at(area->get(), "image") : result<core::unique_fd>(area.error());
    if (!image) {
        return image.error(); // a link, say: not what was made above
    }
    done = write_file_at(image->get(), "image.json", encode_image_config(*config), 0600);
    if (!done) {
        return done;
    }
    ::syncfs(image->get()); // no crash of the machine leaves a name without its content
    return ::rename(made.c_str(), what.target.c_str()) == 0 ? result<void>() : os_error(what.target, errno);
}

} // namespace sandboxd::launcher::blocking
