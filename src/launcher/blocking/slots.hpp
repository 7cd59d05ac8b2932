#pragma once

#include "launcher/blocking/child.hpp"
#include "launcher/cgroups.hpp"
#include "launcher/requests.hpp"
#include "launcher/server.hpp"
#include "launcher/uid_ranges.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace sandboxd::launcher::blocking {

/// What every request has at hand in its worker process.
struct worker_context {
    launcher_options options;
    cgroup_layout cgroups;
    uid_ranges ranges;
    std::function<void(std::string)> progress; ///< a line for the service's log
    std::function<bool()> given_up;            ///< nobody waits for this request any more: end it

    [[nodiscard]] range_owner owner(const std::string& slot) const {
        return {options.state_dir, options.service_uuid, slot};
    }
    [[nodiscard]] std::string cgroup(const std::string& slot) const {
        return cgroup_path(options.service_uuid, slot);
    }
};

/// `<state_dir>/oci/<slot>`: what is kept of one sandbox. Held under its lock, so that a removal waits for a
/// start that still runs, even for the runtime it has called.
struct slot_directory {
    core::unique_fd directory;
    core::unique_fd lock;
    bool has_layer = false; ///< one that a stop has left
};

/// errc::exists when the slot has a directory, unless that holds nothing but a layer that is asked for by
/// `keep`; errc::gone when that is asked for and is not there.
[[nodiscard]] result<slot_directory> create_slot(const worker_context& context, const std::string& slot,
                                                 keeping keep);

/// errc::not_found without a directory, errc::timeout when its lock is held past the deadline.
[[nodiscard]] result<slot_directory> lock_slot(const worker_context& context, const std::string& slot,
                                               deadline until);

/// The record of a sandbox that has been started, written when the runtime has returned.
struct slot_state {
    std::int32_t pid = 0;
    std::uint64_t start_ticks = 0;
    std::string boot_id; ///< of the kernel: pids mean nothing after a reboot
    std::uint32_t uid_base = 0;
    std::string runtime = "runc"; ///< what it was started with
    std::optional<account> user;
};

[[nodiscard]] result<void> write_state(int slot_directory, const slot_state& state);
[[nodiscard]] result<slot_state> read_state(int slot_directory);

/// The slot's range, noted as soon as it is claimed.
[[nodiscard]] result<void> write_uid_base(int slot_directory, std::uint32_t base);
[[nodiscard]] std::optional<std::uint32_t> read_uid_base(int slot_directory);

/// The key of the image that the slot was started with: what is kept of it stands on that, whatever the
/// image's name means later.
[[nodiscard]] result<void> write_image_key(int slot_directory, const std::string& key);
[[nodiscard]] std::optional<std::string> read_image_key(int slot_directory);

/// A socket beside the slot's record, for an agent that accepts on it; only the service may connect.
[[nodiscard]] result<core::unique_fd> listen_handed_in(int slot_directory, const worker_context& context);

/// A socket in the slot's `door`, a directory that the sandbox sees read-only, for an agent that dials.
/// Takes the place of an earlier one: the agent tries again by its path.
[[nodiscard]] result<core::unique_fd> listen_at_door(int slot_directory);

/// Boot id of this kernel.
[[nodiscard]] std::string boot_id();

/// Field 22 of /proc/PID/stat.
[[nodiscard]] std::optional<std::uint64_t> start_ticks(std::int32_t pid);

/// A pidfd of the very process that the state names; errc::gone when it has ended.
[[nodiscard]] result<core::unique_fd> open_process(const slot_state& state);

/// False at the deadline.
[[nodiscard]] bool wait_for_end(int pidfd, deadline until);

/// Answers with the descriptors that go with them.
struct started {
    sandbox_started facts;
    core::unique_fd pidfd;
    core::unique_fd socket;
};

[[nodiscard]] result<started> start(const worker_context& context, const start_sandbox& request,
                                    deadline until);
[[nodiscard]] result<started> attach(const worker_context& context, const attach_sandbox& request);
[[nodiscard]] result<void> remove(const worker_context& context, const std::string& slot, deadline until);
[[nodiscard]] result<void> stop(const worker_context& context, const std::string& slot, deadline until);

/// Says that the slot's layer outlives a stop.
[[nodiscard]] result<void> mark_kept(int slot_directory);
[[nodiscard]] bool is_marked_kept(int slot_directory);
// The same for a slot whose lock is held; end_locked() ends what runs, files stay.
[[nodiscard]] result<void> end_locked(const worker_context& context, const std::string& slot,
                                      const slot_directory& held, deadline until);
[[nodiscard]] result<void> remove_locked(const worker_context& context, const std::string& slot,
                                         const slot_directory& held, deadline until);
[[nodiscard]] result<void> stop_locked(const worker_context& context, const std::string& slot,
                                       const slot_directory& held, deadline until);
[[nodiscard]] result<slot_list> list(const worker_context& context, const list_slots& request);
[[nodiscard]] result<image_info> import(const worker_context& context, const import_image& request,
                                        deadline until);
[[nodiscard]] result<image_info> keep(const worker_context& context, const keep_image& request,
                                      deadline until);
[[nodiscard]] result<image_names> list_names(const worker_context& context, const list_images& request);
[[nodiscard]] result<void> forget(const worker_context& context, const forget_images& request,
                                  deadline until);
[[nodiscard]] host_features probe(const worker_context& context, deadline until);

} // namespace sandboxd::launcher::blocking
