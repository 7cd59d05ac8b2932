#include "sandbox/docker/builder.hpp"

#include <array>
#include <string_view>

namespace sandboxd::sandboxes::docker_backend {

namespace {

error refuse(std::string why) {
    return {errc::start_failed, std::move(why)};
}

result<void> check_image(const std::string& image) {
    if (image.empty()) {
        return refuse("the runtime names no image");
    }
    for (const std::string_view form :
         std::array<std::string_view, 4>{"dir:", "oci:", "docker-archive:", "/"}) {
        if (std::string_view(image).substr(0, form.size()) == form) {
            return refuse("image '" + image +
                          "' is a form of the oci backend: the docker backend takes names of images, such as "
                          "python:3.12-slim");
        }
    }
    if (image == "host") {
        return refuse("image 'host', the host's own system, is there with the oci backend only: name an "
                      "image, such as python:3.12-slim");
    }
    return {};
}

bool has_nul(std::string_view text) {
    return text.find('\0') != std::string_view::npos;
}

} // namespace

result<void> check_spec(const sandbox_spec& spec) {
    if (auto ok = check_image(spec.image); !ok) {
        return ok;
    }
    if (has_nul(spec.work_dir) || spec.work_dir.empty() || spec.work_dir.front() != '/') {
        return refuse("the work directory '" + spec.work_dir + "' is no absolute path");
    }
    for (const auto& [name, value] : spec.env) {
        if (name.empty() || name.find('=') != std::string::npos || has_nul(name) || has_nul(value)) {
            return refuse("'" + name + "' is no name or has no value that an environment can hold");
        }
    }
    return {};
}

} // namespace sandboxd::sandboxes::docker_backend
