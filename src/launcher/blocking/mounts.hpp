#pragma once

#include "core/fd.hpp"
#include "sandboxd/error.hpp"

#include <cstdint>
#include <string>
#include <sys/types.h>
#include <utility>

namespace sandboxd::launcher::blocking {

/// Gives this process a mount namespace of its own, from which nothing reaches the host's.
[[nodiscard]] result<void> leave_mount_namespace();

/// A child that was told to end; it is taken, and waited for where it must be, when this goes.
class ending_child {
public:
    ending_child() = default;
    explicit ending_child(pid_t pid) noexcept : pid_(pid) {}
    ending_child(ending_child&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
    ending_child& operator=(ending_child&& other) noexcept {
        std::swap(pid_, other.pid_);
        return *this;
    }
    ~ending_child();

private:
    pid_t pid_ = -1;
};

struct user_namespace {
    core::unique_fd fd;  ///< it lives as long as this
    ending_child holder; ///< to be kept a while: it has the caller's descriptors, and takes a moment to end
};

/// A user namespace that shows ids from 0 as `base` and up (ids_per_sandbox of them).
[[nodiscard]] result<user_namespace> create_user_namespace(std::uint32_t base);

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
