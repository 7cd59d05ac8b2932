#pragma once

#include "launcher/blocking/images.hpp"
#include "launcher/blocking/mounts.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace sandboxd::launcher::blocking {

/// The mounts of one start, put together on a tmpfs in this process's own mount namespace, under short fixed
/// names that any uid may pass: the runtime sets a root up as the sandbox's own root, which may not walk
/// through the state directory.
struct staging {
    std::string directory; ///< also the bundle: config.json lies here
    core::unique_fd root;  ///< the overlay
    user_namespace users;  ///< for the ids of mounts; none where they are those outside

    [[nodiscard]] std::string rootfs() const { return directory + "/root"; }
    [[nodiscard]] std::string workspace() const { return directory + "/workspace"; }
    [[nodiscard]] std::string agent() const { return directory + "/agent"; }
    [[nodiscard]] std::string door() const { return directory + "/door"; }
};

struct staging_options {
    std::optional<std::uint32_t> uid_base; ///< absent: ids inside are those outside
    bool with_door = false; ///< the agent in a directory with the slot's door, for root inside only
};

/// Leaves the mount namespace and mounts the tmpfs, which is empty.
[[nodiscard]] result<staging> begin_staging(const worker_context& context, const staging_options& options);

/// Mounts image and layer as an overlay that belongs to the uids of `uid_base`, the agent (and the door), the
/// workspace with its ids mapped.
[[nodiscard]] result<void> stage(staging& area, const worker_context& context, const start_sandbox& request,
                                 const local_image& image, const slot_directory& slot,
                                 const staging_options& options);

/// Puts a root together as stage() does, from an empty image in the state directory, to see whether this host
/// can.
[[nodiscard]] result<void> try_staging(const worker_context& context, std::uint32_t uid_base);

} // namespace sandboxd::launcher::blocking
