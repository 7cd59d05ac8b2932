#pragma once

// How the agent gets into containers (design.md, "The agent"): a named volume per agent version and
// architecture, bound read-only. It is filled through a container that never runs, needs no path of the
// daemon's host, and is made again when it was pruned.

#include "core/turns.hpp"
#include "docker/engine.hpp"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace sandboxd::sandboxes::docker_backend {

/// Where a sandbox finds what is ours.
inline constexpr const char* agent_mount = "/.sandboxd/bin";
inline constexpr const char* agent_program = "/.sandboxd/bin/sandboxd-agent";
inline constexpr const char* link_mount = "/.sandboxd/link";

struct agent_volume_options {
    std::shared_ptr<docker::engine> engine;
    std::string service_uuid;    ///< label of the helper containers
    std::string program;         ///< our own agent's file; others lie beside it as `<program>-<architecture>`
    std::string proof_directory; ///< made when the daemon may be on this host; "" when it can't be
};

class agent_volume {
public:
    explicit agent_volume(agent_volume_options options)
        : options_(std::move(options)), turns_(std::make_shared<core::turns>()) {}

    /// The volume for this image's architecture, there and filled as far as the daemon tells. The first call
    /// also finds out whether the daemon is on this host. errc::start_failed in words.
    [[nodiscard]] task<result<std::string>> find(docker::image_details image);

    /// Fills it anew: a container did not find the agent in it (pruned, or cut off while being filled).
    /// `seen` is filled_count() as it was before that container was made: who comes second has nothing to do.
    [[nodiscard]] task<result<void>> refill(docker::image_details image, unsigned seen);
    [[nodiscard]] unsigned filled_count() const noexcept { return filled_; }

    /// Copies the agent into a container that was not made by us, where the volume would have it.
    [[nodiscard]] task<result<void>> copy_into(std::string container, std::string image);

    /// The daemon writes to the same file system as we do: proven by a file written through it.
    [[nodiscard]] bool daemon_is_local() const noexcept { return local_; }

private:
    struct agent_file {
        std::string volume;
        std::string content;
    };

    [[nodiscard]] result<std::shared_ptr<const agent_file>> file_for(const std::string& architecture);
    [[nodiscard]] task<result<void>> help(docker::image_details image, std::shared_ptr<const agent_file> file,
                                          bool fill, bool prove);
    [[nodiscard]] task<result<void>> help_with(std::string container, std::shared_ptr<const agent_file> file,
                                               bool fill, bool prove);

    agent_volume_options options_;
    std::shared_ptr<core::turns> turns_;
    std::mutex mutex_;
    std::map<std::string, std::shared_ptr<const agent_file>> files_; ///< by architecture
    std::map<std::string, bool> known_;                              ///< volumes seen by this process
    std::atomic<unsigned> filled_{0};
    std::atomic<bool> proven_{false};
    std::atomic<bool> local_{false};
};

} // namespace sandboxd::sandboxes::docker_backend
