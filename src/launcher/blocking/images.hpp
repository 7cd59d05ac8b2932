#pragma once

#include "launcher/blocking/slots.hpp"
#include "launcher/image_config.hpp"
#include "launcher/image_reference.hpp"

#include <string>
#include <vector>

namespace sandboxd::launcher::blocking {

/// An image that is ready: root file systems to put below an overlay.
struct local_image {
    std::vector<std::string> layers; ///< directories, the topmost first; at least one
    image_config config;
    bool host_directories = false; ///< the host's system directories are mounted into it
};

/// By the key that import() answered; errc::not_found when it has been removed since.
[[nodiscard]] result<local_image> find_image(const worker_context& context, const std::string& key);

/// Names below images/: "host-<hex>", "sha256-<hex>" and "built-<hex>".
[[nodiscard]] bool is_stored_key(std::string_view key);

/// The keys of the images that a built one lies on, the topmost first; of any other, none.
[[nodiscard]] std::vector<std::string> images_below(const std::string& state_dir, const std::string& key);

/// The skeleton of the image `host`: directories, links, and an /etc of what programs need to start; nothing
/// of the host's accounts, secrets or homes. Made once per content, kept below <state_dir>/images. Answers
/// its key.
[[nodiscard]] result<std::string> make_host_image(const worker_context& context);

/// Fetches an image of a registry by skopeo, once per digest however many ask at a time, and unpacks it by
/// umoci, both confined. What its name means is asked once; the answer is kept. Answers its key.
[[nodiscard]] result<std::string> fetch_image(const worker_context& context, const image_reference& reference,
                                              const import_image& request, deadline until);

/// Mounts the host's system directories (/usr, and those beside it that are no links into it) read-only into
/// a root made over that skeleton. Ids are not mapped: files of the host's root that nobody else may read
/// stay unreadable inside.
[[nodiscard]] result<void> mount_host_directories(int root);

} // namespace sandboxd::launcher::blocking
