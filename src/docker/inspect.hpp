#pragma once

#include "docker/container_spec.hpp"
#include "docker/json.hpp"

namespace sandboxd::docker {

/// `GET /containers/{id}/json`, as far as we use it.
struct container_details {
    std::string id;
    std::string name; ///< without the leading '/'
    std::string image_id;
    std::string status; ///< created, running, paused, restarting, removing, exited, dead
    bool running = false;
    bool paused = false;
    bool oom_killed = false;
    std::int64_t pid = 0; ///< on the daemon's host; 0 when not running
    std::optional<std::int64_t> exit_code;
    std::string state_error;
    std::string started_at;
    text_pairs labels;
    std::vector<std::string> exec_ids;
    json::object config; ///< `Config` as answered
    json::object host;   ///< `HostConfig` as answered
};

[[nodiscard]] container_details read_container(const json::object& from);

/// What of `wanted` the daemon did not take over, one sentence each: limits, security options, runtime,
/// network, mounts. Empty when all is as asked (engine-facts A1: misspelt or unsupported fields are dropped
/// silently, so they are verified by inspect).
[[nodiscard]] std::vector<std::string> differences(const container_spec& wanted,
                                                   const container_details& found);

} // namespace sandboxd::docker
