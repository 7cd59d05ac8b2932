#pragma once

#include "launcher/image_config.hpp"
#include "launcher/requests.hpp"
#include "sandboxd/error.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace sandboxd::launcher::blocking {

// What a start reads from and puts into the mounted root of its sandbox, given as a descriptor. The image may
// be hostile: nothing here follows a link out of the root or waits for a file.

/// The runtime reads /etc/passwd and /etc/group inside the sandbox, with a plain open that a FIFO, or a link
/// to what is only there once /proc and /dev are mounted, would hold for ever: errc::start_failed when either
/// is there and no plain file.
[[nodiscard]] result<void> check_accounts(int root);

struct identity {
    std::optional<account> user; ///< absent: root
    std::string home;
};

/// Who the sandbox's commands run as: the request's uid, or the image's user looked up in its own
/// /etc/passwd. errc::start_failed when that user is unknown or beyond the ids of a sandbox.
[[nodiscard]] result<identity> find_identity(int root, const start_sandbox& request,
                                             const image_config& image);

/// Makes the work directory (an absolute path), owned by `who`, and /etc/hostname and /etc/hosts unless the
/// image has its own. Ids are the host's: `uid_base` is the sandbox's root.
[[nodiscard]] result<void> furnish_root(int root, std::uint32_t uid_base, const identity& who,
                                        const std::string& work_dir, const std::string& hostname);

} // namespace sandboxd::launcher::blocking
