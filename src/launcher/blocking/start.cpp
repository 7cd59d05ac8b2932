#include "launcher/blocking/cgroup_lock.hpp"
#include "launcher/blocking/files.hpp"
#include "launcher/blocking/furnish.hpp"
#include "launcher/blocking/host.hpp"
#include "launcher/blocking/image_names.hpp"
#include "launcher/blocking/network.hpp"
#include "launcher/blocking/runtime_beside.hpp"
#include "launcher/blocking/slots.hpp"
#include "launcher/blocking/staging.hpp"
#include "launcher/bundle_config.hpp"

#include <cerrno>
#include <charconv>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace sandboxd::launcher::blocking {

namespace {

constexpr auto time_to_undo = std::chrono::seconds(20);

error start_failed(error from) {
    return {errc::start_failed, std::move(from.message)};
}

/// One start, step by step; what it has made is undone by the caller.
class starter {
public:
    starter(const worker_context& context, const oci_runtime& runtime, const start_sandbox& request,
            const slot_directory& slot, deadline until)
        : context_(context), runtime_(runtime), request_(request), slot_(slot), until_(until) {}

    result<started> run() {
        for (const auto step :
             {&starter::claim_uids, &starter::open_door, &starter::begin_staging, &starter::begin_early,
              &starter::mount, &starter::furnish, &starter::write_config, &starter::finish_runtime,
              &starter::find_process, &starter::connect}) {
            if (auto done = (this->*step)(); !done) {
                return done.error();
            }
        }
        return finish();
    }

private:
    /// A kept layer keeps its range: its files carry those uids.
    result<void> claim_uids() {
        const auto before =
            slot_.has_layer ? read_uid_base(slot_.directory.get()) : std::optional<std::uint32_t>();
        // 0: the ids inside are those outside.
        if (before && (*before != 0) != runtime_.shifts_ids()) {
            return error{errc::start_failed,
                         "the kept layer was made under an oci_runtime with other user ids than " +
                             std::string(runtime_.name()) + "'s"};
        }
        if (!runtime_.shifts_ids()) {
            return write_uid_base(slot_.directory.get(), 0);
        }
        const auto owner = context_.owner(request_.slot);
        auto base = before ? context_.ranges.claim_again(owner, *before) : context_.ranges.claim(owner);
        if (!base) {
            return start_failed(base.error());
        }
        uid_base_ = *base;
        return write_uid_base(slot_.directory.get(), uid_base_);
    }

    /// Before the mount namespace is left, from which the slot's door is shown inside.
    result<void> open_door() {
        if (runtime_.door() != agent_door::dialled) {
            return {};
        }
        auto listener = listen_at_door(slot_.directory.get());
        if (!listener) {
            return start_failed(listener.error());
        }
        answer_.socket = std::move(*listener);
        answer_.facts.dials = true;
        return {};
    }

    result<void> begin_staging() {
        auto area = blocking::begin_staging(context_, staging_wishes());
        if (!area) {
            return area.error();
        }
        area_ = std::move(*area);
        return {};
    }

    [[nodiscard]] staging_options staging_wishes() const {
        return {runtime_.shifts_ids() ? std::optional(uid_base_) : std::nullopt,
                runtime_.door() == agent_door::dialled};
    }

    result<void> begin_early() { return call_.begin_early(area_.directory); }

    result<void> mount() {
        const auto before =
            slot_.has_layer ? read_image_key(slot_.directory.get()) : std::optional<std::string>();
        const auto& key = before ? *before : request_.image;
        // What is removed meanwhile is chosen by what the slots say: none goes between the note and the
        // mount.
        const auto stays = lock_images(context_.options.state_dir, until_, true);
        if (!stays) {
            return start_failed(stays.error());
        }
        if (auto noted = write_image_key(slot_.directory.get(), key); !noted) {
            return start_failed(noted.error());
        }
        auto image = find_image(context_, key);
        if (!image) {
            return before ? start_failed(image.error()) : image.error();
        }
        image_ = std::move(*image);
        return stage(area_, context_, request_, image_, slot_, staging_wishes());
    }

    /// Users, files and the work directory, through the mounted root.
    result<void> furnish() {
        const int root = area_.root.get();
        if (auto done = check_accounts(root); !done) {
            return done;
        }
        auto who = find_identity(root, request_, image_.config);
        if (!who) {
            return who.error();
        }
        who_ = std::move(*who);
        work_dir_ = !request_.work_dir.empty() ? request_.work_dir : image_.config.work_dir;
        if (work_dir_.empty()) {
            work_dir_ = "/";
        }
        if (auto done = furnish_root(root, uid_base_, who_, work_dir_, request_.hostname); !done) {
            return start_failed(done.error());
        }
        if (request_.network) {
            if (auto done = write_resolver(root, uid_base_); !done) {
                return start_failed(done.error());
            }
        }
        return {};
    }

    result<void> write_config() {
        bundle_config config;
        config.rootfs = area_.rootfs();
        config.agent = agent_command(config);
        if (request_.run_entrypoint && !image_.config.entrypoint.empty()) {
            config.entrypoint = image_.config.entrypoint;
            config.entrypoint.emplace_back("sleep");
            config.entrypoint.emplace_back("infinity");
        }
        config.env = merge_environment(image_.config.env, request_.env, who_.home, request_.hostname);
        config.work_dir = work_dir_;
        config.hostname = request_.hostname;
        if (request_.workspace_dir) {
            config.workspace_source = area_.workspace();
        }
        config.uid_base = uid_base_;
        config.cgroups_path = context_.cgroup(request_.slot);
        config.limits = enforceable_limits();
        config.protect_agent = has_resource_capability();
        if (!config.protect_agent) {
            rlimit now{};
            ::getrlimit(RLIMIT_NOFILE, &now);
            config.open_files = std::min<std::uint64_t>(config.open_files, now.rlim_max); // can't be raised
        }
        config.limit_swap = accounts_swap(context_.cgroups);
        config.filter = filters_system_calls();
        runtime_.adapt(config, {context_.cgroups});
        return call_.configure(runtime_config(config));
    }

    /// Also says where the agent comes from.
    std::vector<std::string> agent_command(bundle_config& config) const {
        const auto& options = context_.options;
        if (runtime_.door() == agent_door::handed_in) {
            config.agent_source = area_.agent();
            std::vector<std::string> argv{agent_inside};
            argv.insert(argv.end(), options.agent_arguments.begin(), options.agent_arguments.end());
            return argv;
        }
        config.door_source = area_.door();
        std::vector<std::string> argv{std::string(door_inside) + "/agent"};
        argv.insert(argv.end(), options.dialling_arguments.begin(), options.dialling_arguments.end());
        argv.push_back(std::string(door_inside) + "/socket/agent.sock");
        return argv;
    }

    /// Without what this host has no controller for (said by probe()): the runtime would refuse to start.
    [[nodiscard]] sandbox_limits enforceable_limits() const {
        auto limits = request_.limits;
        if (!has_controller(context_.cgroups, "memory")) {
            limits.memory_bytes.reset();
        }
        if (!has_controller(context_.cgroups, "cpu")) {
            limits.cpus.reset();
            limits.cpu_shares.reset();
        }
        if (!has_controller(context_.cgroups, "pids")) {
            limits.pids.reset();
        }
        return limits;
    }

    result<void> finish_runtime() {
        const auto before = std::chrono::steady_clock::now();
        auto done = call_.finish(until_);
        runtime_time_ = std::chrono::steady_clock::now() - before;
        moves_.release();
        return done;
    }

    result<void> find_process() {
        const auto text = read_file(area_.directory + "/pid", 32);
        if (!text ||
            std::from_chars(text->data(), text->data() + text->size(), answer_.facts.pid).ec != std::errc()) {
            return error{errc::start_failed, "the runtime left no pid"};
        }
        // It can't have been taken by another process: whoever ends is this process's or the launcher's to
        // reap (both are subreapers), and neither has.
        answer_.pidfd.reset(static_cast<int>(::syscall(SYS_pidfd_open, answer_.facts.pid, 0)));
        const auto ticks = start_ticks(answer_.facts.pid);
        if (!answer_.pidfd || !ticks) {
            return error{errc::start_failed, "the sandbox ended at once"};
        }
        answer_.facts.start_ticks = *ticks;
        return {};
    }

    result<void> connect() {
        return request_.network ? start_network(context_, request_.slot, answer_.facts.pid, until_)
                                : result<void>();
    }

    result<started> finish() {
        slot_state state{answer_.facts.pid, answer_.facts.start_ticks,    boot_id(),
                         uid_base_,         std::string(runtime_.name()), who_.user};
        if (auto written = write_state(slot_.directory.get(), state); !written) {
            return start_failed(written.error());
        }
        if (!answer_.facts.dials) {
            answer_.socket.reset(
                ::openat(slot_.directory.get(), "agent.sock", O_PATH | O_CLOEXEC | O_NOFOLLOW));
        }
        if (!answer_.socket) {
            return start_failed(os_error("agent.sock", errno));
        }
        const auto total = std::chrono::steady_clock::now() - began_;
        const auto us = [](auto time) {
            return static_cast<std::uint64_t>(
                std::chrono::duration_cast<std::chrono::microseconds>(time).count());
        };
        answer_.facts.uid_base = uid_base_;
        answer_.facts.user = who_.user;
        answer_.facts.setup_us = us(total - runtime_time_);
        answer_.facts.runtime_us = us(runtime_time_);
        return std::move(answer_);
    }

    const worker_context& context_;
    cgroup_lock moves_{context_.cgroups}; ///< from here to the end of the runtime
    const oci_runtime& runtime_;
    const start_sandbox& request_;
    const slot_directory& slot_;
    deadline until_;
    std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
    std::chrono::steady_clock::duration runtime_time_{0};
    std::uint32_t uid_base_ = 0;
    local_image image_;
    staging area_;
    runtime_beside call_{context_, runtime_, request_, slot_};
    identity who_;
    std::string work_dir_;
    started answer_;
};

/// Where no image is named only a layer will do that says what it stands on; nothing is made then.
result<slot_directory> open_slot(const worker_context& context, const start_sandbox& request) {
    if (!request.image.empty() || request.keep == keeping::nothing) {
        return create_slot(context, request.slot, request.keep);
    }
    const error unknown{errc::not_found, "no image is named, and no layer of the slot " + request.slot +
                                             " says which one it stands on"};
    auto there = create_slot(context, request.slot, keeping::kept);
    if (!there) {
        const bool may_be_new = there.error().code == errc::gone && request.keep == keeping::layer;
        return may_be_new ? unknown : there.error();
    }
    if (!there->has_layer || !read_image_key(there->directory.get())) {
        return unknown;
    }
    return there;
}

} // namespace

result<started> start(const worker_context& context, const start_sandbox& request, deadline until) {
    const auto* const runtime = find_runtime(request.runtime);
    if (runtime == nullptr) {
        return error{errc::start_failed, "there is no oci_runtime '" + request.runtime + "'"};
    }
    if (request.network && !runtime->shifts_ids()) {
        return error{errc::unsupported, "network_mode 'bridge' can't be had with the oci_runtime '" +
                                            std::string(runtime->name()) + "': use 'none'"};
    }
    auto slot = open_slot(context, request);
    if (!slot) {
        return slot.error();
    }
    auto answer = starter(context, *runtime, request, *slot, until).run();
    if (!answer) {
        const auto undo = slot->has_layer ? stop_locked : remove_locked;
        const auto undone =
            undo(context, request.slot, *slot, std::chrono::steady_clock::now() + time_to_undo);
        if (!undone) {
            context.progress("slot " + request.slot + " could not be cleared: " + undone.error().message);
        }
    }
    return answer;
}

} // namespace sandboxd::launcher::blocking
