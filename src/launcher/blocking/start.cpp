#include "launcher/blocking/files.hpp"
#include "launcher/blocking/furnish.hpp"
#include "launcher/blocking/host.hpp"
#include "launcher/blocking/slots.hpp"
#include "launcher/blocking/staging.hpp"
#include "launcher/bundle_config.hpp"

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

namespace sandboxd::launcher::blocking {

namespace {

constexpr int backlog = 16;
constexpr std::size_t max_complaint = 16 * 1024;
constexpr auto time_to_undo = std::chrono::seconds(20);

error start_failed(error from) {
    return {errc::start_failed, std::move(from.message)};
}

result<core::unique_fd> listen_in(int directory, const worker_context& context) {
    core::unique_fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    // Through the descriptor: the state directory's path may be longer than an address.
    const auto path = "/proc/self/fd/" + std::to_string(directory) + "/agent.sock";
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    const auto& options = context.options;
    if (!socket || ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::fchmodat(directory, "agent.sock", 0600, 0) != 0 ||
        ::fchownat(directory, "agent.sock", options.service_uid, options.service_gid, 0) != 0 ||
        ::listen(socket.get(), backlog) != 0) {
        return os_error("the agent's socket", errno);
    }
    return socket;
}

/// One start, step by step; what it has made is undone by the caller.
class starter {
public:
    starter(const worker_context& context, const start_sandbox& request, const slot_directory& slot,
            deadline until)
        : context_(context), request_(request), slot_(slot), until_(until) {}

    result<started> run() {
        for (const auto step : {&starter::claim_uids, &starter::mount, &starter::furnish,
                                &starter::write_config, &starter::call_runtime, &starter::find_process}) {
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
        const auto owner = context_.owner(request_.slot);
        auto base = before ? context_.ranges.claim_again(owner, *before) : context_.ranges.claim(owner);
        if (!base) {
            return start_failed(base.error());
        }
        uid_base_ = *base;
        return write_uid_base(slot_.directory.get(), uid_base_);
    }

    result<void> mount() {
        auto image = find_image(context_, request_.image);
        if (!image) {
            return image.error();
        }
        image_ = std::move(*image);
        auto area = stage(context_, request_, image_, slot_, uid_base_);
        if (!area) {
            return area.error();
        }
        area_ = std::move(*area);
        return {};
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
        return {};
    }

    result<void> write_config() {
        bundle_config config;
        config.rootfs = area_.rootfs();
        config.argv = {agent_inside};
        config.argv.insert(config.argv.end(), context_.options.agent_arguments.begin(),
                           context_.options.agent_arguments.end());
        if (!image_.config.entrypoint.empty()) {
            config.argv.emplace_back("--entrypoint");
            config.argv.insert(config.argv.end(), image_.config.entrypoint.begin(),
                               image_.config.entrypoint.end());
            config.argv.emplace_back("sleep");
            config.argv.emplace_back("infinity");
        }
        config.env = merge_environment(image_.config.env, request_.env, who_.home, request_.hostname);
        config.work_dir = work_dir_;
        config.hostname = request_.hostname;
        config.agent_source = area_.agent();
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
        return write_file_at(AT_FDCWD, area_.directory + "/config.json", runtime_config(config), 0600);
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

    result<void> call_runtime() {
        auto listener = listen_in(slot_.directory.get(), context_);
        if (!listener) {
            return start_failed(listener.error());
        }
        // The log is a file of its own: the runtime's standard streams become the sandbox's.
        const auto complaints = area_.directory + "/log";
        child_program program;
        const auto& options = context_.options;
        program.argv = {options.runtime,
                        "--log",
                        complaints,
                        "--root",
                        options.state_dir + "/runc",
                        "run",
                        "--detach",
                        "--preserve-fds",
                        "1",
                        "--pid-file",
                        area_.directory + "/pid",
                        "--bundle",
                        area_.directory,
                        request_.slot};
        const char* path = std::getenv("PATH");
        program.env = {{"PATH", path != nullptr
                                    ? path
                                    : "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}};
        program.directory = area_.directory;
        program.passed = {listener->get()};
        program.kept = {slot_.lock.get()};
        const auto before = std::chrono::steady_clock::now();
        auto end = run_child(program, until_);
        runtime_time_ = std::chrono::steady_clock::now() - before;
        if (!end) {
            return end.error();
        }
        if (end->timed_out) {
            return error{errc::start_failed, options.runtime + " did not start the sandbox in time"};
        }
        if (end->exit_code != 0) {
            return error{errc::start_failed, options.runtime + " failed: " + last_complaint(complaints)};
        }
        return {};
    }

    /// The runtime's last line, without the dress of its log format.
    static std::string last_complaint(const std::string& path) {
        auto read = read_file(path, max_complaint);
        std::string text = read ? std::move(*read) : std::string();
        while (!text.empty() && text.back() == '\n') {
            text.pop_back();
        }
        text = text.substr(text.rfind('\n') + 1);
        const auto message = text.find("msg=\"");
        if (message != std::string::npos && text.back() == '"') {
            text = text.substr(message + 5, text.size() - message - 6);
        }
        return text.empty() ? "it gave no reason" : text;
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

    result<started> finish() {
        slot_state state{answer_.facts.pid, answer_.facts.start_ticks, boot_id(), uid_base_, who_.user};
        if (auto written = write_state(slot_.directory.get(), state); !written) {
            return start_failed(written.error());
        }
        answer_.socket.reset(::openat(slot_.directory.get(), "agent.sock", O_PATH | O_CLOEXEC | O_NOFOLLOW));
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
    const start_sandbox& request_;
    const slot_directory& slot_;
    deadline until_;
    std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
    std::chrono::steady_clock::duration runtime_time_{0};
    std::uint32_t uid_base_ = 0;
    local_image image_;
    staging area_;
    identity who_;
    std::string work_dir_;
    started answer_;
};

} // namespace

result<started> start(const worker_context& context, const start_sandbox& request, deadline until) {
    auto slot = create_slot(context, request.slot, request.keep);
    if (!slot) {
        return slot.error();
    }
    auto answer = starter(context, request, *slot, until).run();
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
