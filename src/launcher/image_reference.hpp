#pragma once

#include "sandboxd/error.hpp"

#include <string>
#include <string_view>

namespace sandboxd::launcher {

/// An image as a runtime names it ("Decided" 13).
struct image_reference {
    enum class kind {
        host,           ///< the host's own system directories
        directory,      ///< a root file system: `dir:PATH` or an absolute path
        oci_layout,     ///< `oci:LAYOUT[:TAG]`
        docker_archive, ///< `docker-archive:FILE`
    };
    kind what = kind::host;
    std::string path; ///< absolute, none for host
    std::string tag;  ///< of oci_layout, may be empty
    friend bool operator==(const image_reference&, const image_reference&) = default;
};

/// errc::start_failed, in words, for what this release can't run: references of a registry, relative paths,
/// "/" itself (its secrets would be readable inside).
[[nodiscard]] result<image_reference> parse_image_reference(std::string_view text);

} // namespace sandboxd::launcher
