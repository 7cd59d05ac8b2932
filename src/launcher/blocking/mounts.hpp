#pragma once

#include "core/fd.hpp"
#include "sandboxd/error.hpp"

#include <cstdint>
#include <string>

namespace sandboxd::launcher::blocking {

/// Gives this process a mount namespace of its own, from which nothing reaches the host's.
[[nodiscard]] result<void> leave_mount_namespace();

/// A user namespace that shows ids from 0 as `base` and up (ids_per_sandbox of them); lives as long as the
/// descriptor.
[[nodiscard]] result<core::unique_fd> create_user_namespace(std::uint32_t base);

struct clone_options {
    bool recursive = false; ///< with what is mounted below
    bool read_only = false;
    int user_namespace = -1; ///< show ids through it
};

/// A copy of the mount that holds an open directory or file, with that as its root; nosuid and nodev;
/// attached nowhere.
[[nodiscard]] result<core::unique_fd> clone_mount(int source, const std::string& name, clone_options options);

/// Mounts such a copy on an open directory or file.
[[nodiscard]] result<void> attach_mount(int mount, int target, const std::string& name);

/// A file system of its own for the start of one sandbox, seen by this mount namespace only.
[[nodiscard]] result<void> mount_staging(const std::string& path);

/// An overlay (nosuid, nodev) of `lower` (one or more directories, the topmost first, with colons between)
/// and the directories upper and work of `layer`; the paths hold no comma, colon or backslash.
[[nodiscard]] result<void> mount_overlay(const std::string& target, const std::string& lower,
                                         const std::string& layer, bool kept);

} // namespace sandboxd::launcher::blocking
