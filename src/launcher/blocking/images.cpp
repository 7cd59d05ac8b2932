#include "launcher/blocking/images.hpp"

#include "launcher/blocking/files.hpp"

#include <algorithm>

namespace sandboxd::launcher::blocking {

namespace {

constexpr std::size_t max_config = 4 * 1024 * 1024;

/// Names below images/: "host-<hex>" and "sha256-<hex>".
bool is_stored_key(std::string_view key) {
    const auto dash = key.find('-');
    const auto kind = key.substr(0, dash);
    return dash != std::string_view::npos && (kind == "host" || kind == "sha256") && key.size() <= 80 &&
           key.substr(dash + 1).find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

} // namespace

result<local_image> find_image(const worker_context& context, const std::string& key) {
    local_image image;
    if (key.substr(0, 4) == "dir:") {
        auto reference = parse_image_reference(key);
        if (!reference) {
            return reference.error();
        }
        image.rootfs = reference->path;
        return image;
    }
    if (!is_stored_key(key)) {
        return error{errc::start_failed, "there is no image with the key '" + key + "'"};
    }
    const auto directory = context.options.state_dir + "/images/" + key;
    image.rootfs = directory + "/rootfs";
    image.host_directories = key.substr(0, 5) == "host-";
    if (!image.host_directories) {
        auto text = read_file(directory + "/image.json", max_config);
        if (!text) {
            return error{errc::start_failed, "the image '" + key + "' is not there any more"};
        }
        auto config = decode_image_config(*text);
        if (!config) {
            return config.error();
        }
        image.config = std::move(*config);
    }
    return image;
}

} // namespace sandboxd::launcher::blocking
