#pragma once

// launcher: the small root process (design.md, "Decided" 15). It does mounts, id maps, runtime and cgroup
// calls by typed requests over one SEQPACKET socket pair, so that the process that speaks HTTP needs no
// privilege. This header holds the requests and answers; both ends are the same program, so they have no
// versions.

#include "sandboxd/error.hpp"
#include "sandboxd/sandbox.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace sandboxd::launcher {

using environment = std::vector<std::pair<std::string, std::string>>;

/// User and group inside the sandbox.
struct account {
    std::uint32_t uid = 0;
    std::uint32_t gid = 0;
    friend bool operator==(const account&, const account&) = default;
};

/// Starts a sandbox in a slot; errc::exists when the slot holds something that `keep` says nothing of, or
/// that still runs. With keeping::layer a layer that stop_slot left there is used again, keeping::kept asks
/// for one (errc::gone). Such a layer stands on its own image whatever is named. errc::not_found when the
/// image is not there any more, or none is named and no layer says which. Answer: sandbox_started with two
/// descriptors, a pidfd of the first process and the agent's socket (sandbox_started::dials). On failure
/// nothing is left of it but such a layer.
struct start_sandbox {
    std::string slot;
    std::string hostname;
    std::string image;            ///< what import_image answered as image_info::key; may be empty for a layer
    std::string runtime = "runc"; ///< a name that find_runtime() knows
    sandbox_limits limits;
    std::string work_dir;                     ///< absolute; the image's own when empty
    std::optional<std::string> workspace_dir; ///< host directory bound at work_dir
    std::optional<std::uint32_t> uid;         ///< the command's user and group; the image's own when unset
    std::optional<std::uint32_t>
        workspace_uid; ///< owner given to workspace_dir (contract 4.6.4); unset: untouched
    environment env;   ///< overrides the image's
    keeping keep = keeping::nothing;
    bool network = false;       ///< a user-mode network of its own (`network_mode` bridge)
    bool run_entrypoint = true; ///< false while an image is built
};

/// Finds a running sandbox again. Answer as for start_sandbox; errc::gone when it has ended.
struct attach_sandbox {
    std::string slot;
};

/// Kills what runs in a slot and removes all that is left of it. Idempotent. Answer: done.
struct remove_slot {
    std::string slot;
};

/// Kills what runs in a slot. What keeps its layer keeps that, with its range of uids; of anything else
/// nothing is left, as by remove_slot. Idempotent. Answer: done.
struct stop_slot {
    std::string slot;
};

/// Slots of this state directory in order, at most slots_page of them, the first one after `after`.
struct list_slots {
    std::string after;
};

/// Makes an image ready ("Decided" 13 of design.md's list); progress comes before the answer image_info.
/// References of a registry, and tags of what was built here, are known by the name they were given; errc::
/// not_found for one that would have to be fetched when `fetch` is false.
struct import_image {
    std::string reference;
    bool fetch = true;
    std::string auth; ///< text of an auth.json with what this registry wants; empty: anonymous
};

/// Makes an image of a slot's layer, over the image that the slot was started with; the slot is stopped and
/// removed. An image of that name is one no more afterwards. Answer: image_info.
struct keep_image {
    std::string slot;
    std::string reference; ///< the new image's name
    std::string config;    ///< encode_image_config()
};

/// The names of what was fetched, imported and built, in order, at most images_page of them, the first one
/// after `after`. Answer: image_names.
struct list_images {
    std::string after;
};

/// Forgets these names, then removes every image that no name, no slot and no image above it needs. Answer:
/// done.
struct forget_images {
    std::vector<std::string> references;
};

struct probe_host {};

/// Nobody waits for the answer to that request any more. An import ends soon and leaves nothing half made;
/// whatever else it is goes on. No answer.
struct give_up {
    std::uint64_t request = 0;
};

using request_body = std::variant<start_sandbox, attach_sandbox, remove_slot, stop_slot, list_slots,
                                  import_image, keep_image, list_images, forget_images, probe_host, give_up>;

struct request {
    std::uint64_t id = 0;
    std::chrono::milliseconds deadline{0}; ///< from now
    request_body body;
};

struct sandbox_started {
    std::int32_t pid = 0;
    std::uint64_t start_ticks = 0; ///< field 22 of /proc/PID/stat
    std::uint32_t uid_base = 0;    ///< first host uid of its range
    std::optional<account> user;   ///< of commands; absent: root inside
    std::uint64_t setup_us = 0;    ///< time spent before the runtime was called
    std::uint64_t runtime_us = 0;  ///< in the runtime
    /// False: the second descriptor is an O_PATH one of the socket that the agent accepts on. True: a
    /// listening socket that the agent connects to, again whenever its channel is cut.
    bool dials = false;
    friend bool operator==(const sandbox_started&, const sandbox_started&) = default;
};

struct slot_list {
    std::vector<std::string> slots;
};

struct image_info {
    std::string key;
    std::string config; ///< decode_image_config()
};

struct image_names {
    std::vector<std::string> references; ///< at most images_page
};

/// Sentences for notes(): what this host can't enforce. `fatal`: why no sandbox can be started at all.
struct host_features {
    std::vector<std::string> notes;
    std::optional<std::string> fatal;
};

struct done {};

/// A line for the log; the answer is still to come.
struct progress {
    std::string text;
};

using answer_body =
    std::variant<error, sandbox_started, slot_list, image_info, image_names, host_features, done, progress>;

struct answer {
    std::uint64_t id = 0;
    answer_body body;
};

inline constexpr std::size_t max_message = 256 * 1024; ///< bytes of one message, either way
inline constexpr std::size_t max_descriptors = 2;      ///< with one message
inline constexpr std::size_t slots_page = 1000;
inline constexpr std::size_t images_page = 500;

/// 1 to 64 of a-z, 0-9 and '-', a letter or digit first: safe as file, cgroup and container name.
[[nodiscard]] bool is_slot_name(std::string_view name) noexcept;

[[nodiscard]] std::string encode(const request& message);
[[nodiscard]] std::string encode(const answer& message);

/// errc::protocol for anything that encode() would not have written: unknown members and kinds, wrong types,
/// values out of range, slots with odd names.
[[nodiscard]] result<request> decode_request(std::string_view text);
[[nodiscard]] result<answer> decode_answer(std::string_view text);

} // namespace sandboxd::launcher
