#pragma once

#include "launcher/blocking/tools.hpp"
#include "launcher/oci_index.hpp"

#include <string>

namespace sandboxd::launcher::blocking {

/// The manifest of an image for this machine. An empty tag means the only image, or `latest`.
[[nodiscard]] result<blob_descriptor> find_manifest(const std::string& layout, const std::string& tag);

/// What the unpacking of one image needs.
struct unpacking {
    std::string layout; ///< by its path on the host
    std::string seen;   ///< the same as the tools see it: absolute, or relative to their `layout` directory
    blob_descriptor manifest;
    std::string target; ///< the image's directory below images/, which appears whole
};

/// Unpacks it in the tools' directory, then moves it to its place, on the disk by then.
[[nodiscard]] result<void> unpack(const worker_context& context, const image_tools& tools,
                                  const unpacking& what, deadline until);

} // namespace sandboxd::launcher::blocking
