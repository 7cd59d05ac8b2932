// The checks of single values that a setting and a runtime's entry share (runtimes.hpp).
#include "config/runtimes.hpp"
#include "config/size.hpp"
#include "config/text.hpp"

#include <algorithm>
#include <array>

namespace sandboxd::config {

std::optional<std::string> size_fault(std::string_view text) {
    const auto bytes = parse_size(text);
    if (!bytes) {
        return "not a size such as 512m, 1.5g or 1073741824";
    }
    // The daemon's own floor; below it a sandbox can't start its first process.
    constexpr std::uint64_t least = 6U * 1024U * 1024U;
    if (*bytes < least) {
        return "must be at least 6m";
    }
    return std::nullopt;
}

std::optional<std::string> network_fault(std::string_view mode) {
    if (mode == "host") {
        return "a sandbox never gets the host's own network";
    }
    if (mode.starts_with("container:")) {
        return "a sandbox never shares another container's network";
    }
    return std::nullopt;
}

std::optional<std::string> oci_runtime_fault(std::string_view name) {
    constexpr std::array<std::string_view, 3> supported{"runc", "crun", "runsc"};
    if (std::find(supported.begin(), supported.end(), name) != supported.end()) {
        return std::nullopt;
    }
    return "use one of " + joined(supported);
}

std::optional<std::string> cpus_fault(double cpus) {
    constexpr double least = 0.01; // one hundredth is what a cgroup's quota can still hold
    constexpr double most = 65'536.0;
    if (cpus < least || cpus > most) {
        return "must be from 0.01 to 65536";
    }
    return std::nullopt;
}

std::optional<std::string> work_dir_fault(std::string_view path) {
    if (!path.starts_with('/')) {
        return "must be an absolute path";
    }
    if (path.find_first_not_of('/') == std::string_view::npos) {
        return "must not be the root directory";
    }
    for (std::size_t at = 0; at < path.size();) {
        const std::size_t end = std::min(path.find('/', at), path.size());
        const std::string_view part = path.substr(at, end - at);
        if (part == "." || part == "..") {
            return "must not hold '.' or '..'";
        }
        at = end + 1;
    }
    // Contract 4.4.6: it ends up in an image's build file.
    if (path.find_first_of(";&|`$()<>") != std::string_view::npos) {
        return "must not hold any of ; & | ` $ ( ) < >";
    }
    return std::nullopt;
}

std::optional<std::string> backend_fault(std::string_view name) {
    constexpr std::array<std::string_view, 1> choices{"oci"};
    if (name == "oci") {
        return std::nullopt;
    }
    if (name == "docker") {
        return "the docker backend is not in this release; use one of " + joined(choices);
    }
    return "use one of " + joined(choices) + "." + suggestion(name, choices);
}

} // namespace sandboxd::config
