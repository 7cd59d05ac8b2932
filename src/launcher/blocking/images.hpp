#pragma once

#include "launcher/blocking/slots.hpp"
#include "launcher/image_config.hpp"
#include "launcher/image_reference.hpp"

#include <string>

namespace sandboxd::launcher::blocking {

/// An image that is ready: a root file system to put below an overlay.
struct local_image {
    std::string rootfs;
    image_config config;
    bool host_directories = false; ///< the host's system directories are mounted into it
};

/// By the key that import() answered.
[[nodiscard]] result<local_image> find_image(const worker_context& context, const std::string& key);

/// The skeleton of the image `host`: directories, links, and an /etc of what programs need to start; nothing
/// of the host's accounts, secrets or homes. Made once per content, kept below <state_dir>/images. Answers
/// its key.
[[nodiscard]] result<std::string> make_host_image(const worker_context& context);

/// Unpacks one image of an OCI layout, once per digest however many ask at a time; progress goes to the log.
/// An empty tag means the only image, or `latest`. Answers its key.
[[nodiscard]] result<std::string> import_layout(const worker_context& context, const std::string& layout,
                                                const std::string& tag, deadline until);

/// The same for what `docker save` has written; known again by the file's identity, sizes and times.
[[nodiscard]] result<std::string> import_docker_archive(const worker_context& context,
                                                        const std::string& file, deadline until);

/// Removes what an import that was cut off has left.
void sweep_imports(const std::string& state_dir);

/// Mounts the host's system directories (/usr, and those beside it that are no links into it) read-only into
/// a root made over that skeleton. Ids are not mapped: files of the host's root that nobody else may read
/// stay unreadable inside.
[[nodiscard]] result<void> mount_host_directories(int root);

} // namespace sandboxd::launcher::blocking
