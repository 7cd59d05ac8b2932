#include "launcher/blocking/images.hpp"

#include "launcher/blocking/files.hpp"
#include "launcher/text.hpp"

#include <algorithm>

namespace sandboxd::launcher::blocking {

namespace {

constexpr std::size_t max_config = 4 * 1024 * 1024;

constexpr std::size_t max_layers = 32; ///< overlays know many more, their mount options don't

std::string directory_of(const std::string& state_dir, const std::string& key) {
    return state_dir + "/images/" + key;
}

/// The root file system of one key.
std::string layer_of(const std::string& state_dir, const std::string& key) {
    return key.substr(0, 4) == "dir:" ? key.substr(4) : directory_of(state_dir, key) + "/rootfs";
}

} // namespace

bool is_stored_key(std::string_view key) {
    const auto dash = key.find('-');
    const auto kind = key.substr(0, dash);
    return dash != std::string_view::npos && (kind == "host" || kind == "sha256" || kind == "built") &&
           key.size() > dash + 1 && key.size() <= 80 &&
           key.substr(dash + 1).find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::vector<std::string> images_below(const std::string& state_dir, const std::string& key) {
    std::vector<std::string> below;
    const auto text = is_stored_key(key) ? read_file(directory_of(state_dir, key) + "/below", max_config)
                                         : result<std::string>(error{});
    if (text) {
        for (const auto line : split(*text, '\n')) {
            if (!line.empty()) {
                below.emplace_back(line);
            }
        }
    }
    return below;
}

result<local_image> find_image(const worker_context& context, const std::string& key) {
    local_image image;
    if (key.substr(0, 4) == "dir:") {
        auto reference = parse_image_reference(key);
        if (!reference) {
            return reference.error();
        }
        image.layers = {reference->path};
        return image;
    }
    if (!is_stored_key(key)) {
        return error{errc::start_failed, "there is no image with the key '" + key + "'"};
    }
    const auto& state_dir = context.options.state_dir;
    const auto directory = directory_of(state_dir, key);
    image.layers = {layer_of(state_dir, key)};
    for (const auto& one : images_below(state_dir, key)) {
        image.layers.push_back(layer_of(state_dir, one));
    }
    if (image.layers.size() > max_layers) {
        return error{errc::start_failed, "the image '" + key + "' has more than " +
                                             std::to_string(max_layers) + " images below it"};
    }
    image.host_directories = key.substr(0, 5) == "host-";
    if (!image.host_directories) {
        auto text = read_file(directory + "/image.json", max_config);
        if (!text) {
            return error{errc::not_found, "the image '" + key + "' is not there any more"};
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
