#pragma once

#include "core/gate.hpp"
#include "core/offload.hpp"
#include "sandboxd/sandbox.hpp"
#include "session/native_files.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace sandboxd::session {

/// What is to be proved: that what the sandbox calls `work_dir` is `<root>/<id>/workspace` of the host.
struct door_question {
    std::string root;
    std::string id;
    std::string work_dir;
    bool may_write = false; ///< settings and runtime allow native writes (N5.8, the service's part)
};

/// Contract N16, "Who serves files/*". The host leaves a file of random name and content and takes it away
/// again: seen by the sandbox, the directory is the same one. Then the sandbox's user writes one, and its
/// owner tells whether that user is root, or the service's own, who can change what the service writes (N5.8,
/// by what the disk says rather than by the user's name, so that shifted ids are seen for what they are).
/// Leaves nothing behind, on either side. Never fails: no proof in `patience` means host_door::shut. Runs on
/// a strand; `calls` counts what a sandbox never answers.
[[nodiscard]] task<host_door> prove_door(core::worker_pool& workers, core::gate& calls,
                                         std::shared_ptr<sandbox> box, door_question what,
                                         std::chrono::milliseconds patience);

} // namespace sandboxd::session
