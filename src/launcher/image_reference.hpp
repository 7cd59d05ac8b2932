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
        registry,       ///< `[HOST[:PORT]/]NAME[:TAG][@DIGEST]`
    };
    kind what = kind::host;
    std::string path;   ///< absolute, none for host; of registry: the full name, "docker.io/library/python"
    std::string tag;    ///< of oci_layout, may be empty; of registry, "latest" when none was given
    std::string digest; ///< of registry: "sha256:<64 hex>" when it is given; decides over the tag

    /// Of a registry reference: "docker.io", "localhost:5000".
    [[nodiscard]] std::string host() const { return path.substr(0, path.find('/')); }
    /// The same reference however it was written: with registry, and with digest or tag.
    [[nodiscard]] std::string full() const { return path + (digest.empty() ? ":" + tag : "@" + digest); }
    friend bool operator==(const image_reference&, const image_reference&) = default;
};

/// errc::start_failed, in words, for what can't be an image: relative paths, "/" itself (its secrets would be
/// readable inside), names that no registry has.
[[nodiscard]] result<image_reference> parse_image_reference(std::string_view text);

/// True for a registry on this machine ("localhost", 127.x.x.x, "[::1]"), which is spoken to without TLS
/// where it has none, as the engine does.
[[nodiscard]] bool is_loopback(std::string_view host);

/// "sha256:" and 64 lower-case hex digits.
[[nodiscard]] bool is_digest(std::string_view text);

} // namespace sandboxd::launcher
