#pragma once

#include "launcher/blocking/mounts.hpp"
#include "launcher/blocking/slots.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <sys/statvfs.h>
#include <utility>
#include <vector>

namespace sandboxd::launcher::blocking {

/// One call of a program that handles images.
struct tool_call {
    std::vector<std::string> argv;
    std::vector<int> passed;                    ///< become descriptors 3, 4, ...
    std::function<void(std::string_view)> line; ///< what it prints; the log when empty
    bool network = false;                       ///< the host's, where the programs are confined
};

/// skopeo and umoci, at work in a directory of images/. errc::start_failed in words: the Debian package of
/// one that is not installed, the last line of one that fails, the deadline, a disk that is nearly full.
class image_tools {
public:
    /// As this process: for what the operator has named and put on this host.
    image_tools(const worker_context& context, std::string directory);
    image_tools(const image_tools&) = delete;
    image_tools& operator=(const image_tools&) = delete;
    ~image_tools();

    /// For what comes from elsewhere: as root of a user namespace that is nobody outside, with no privilege,
    /// seeing the directory where its own files have ids from 0. Leaves this process's mount namespace.
    [[nodiscard]] result<void> confine();

    [[nodiscard]] result<void> run(tool_call call, deadline until) const;

    [[nodiscard]] const std::string& directory() const { return directory_; }

private:
    [[nodiscard]] std::optional<std::string> short_of_room() const;

    const worker_context& context_;
    std::string directory_; ///< by its path on the host
    std::string inside_;    ///< as the programs see it
    std::optional<range_owner> owner_;
    std::uint32_t uid_base_ = 0;
    core::unique_fd users_;
};

/// Why nothing more may be put on this disk: less than a twentieth of its inodes or of its bytes (of those at
/// most 1 GiB) is free.
[[nodiscard]] std::optional<std::string> lack_of_room(const struct statvfs& disk);

/// The message in a line of the log format that these programs share, or the line itself.
[[nodiscard]] std::string message_of(std::string_view line);

} // namespace sandboxd::launcher::blocking
