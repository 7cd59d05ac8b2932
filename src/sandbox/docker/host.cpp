#include "sandbox/docker/host.hpp"

#include "core/log.hpp"
#include "sandbox/docker/agent_volume.hpp"
#include "sandbox/docker/heard_stream.hpp"

#include <atomic>
#include <mutex>

namespace sandboxd::sandboxes::docker_backend {

namespace asio = boost::asio;

namespace {

using namespace std::chrono_literals;

constexpr auto hijack_limit = 10s;
constexpr auto dial_limit = 3s;
constexpr auto dial_slice = 200ms;
constexpr auto inspect_limit = 5s;
constexpr auto stats_limit = 3s;
constexpr auto remove_limit = 30s;
constexpr auto end_limit = 5s; ///< from a kill to its effect

/// What a container's standard error says goes to the log: the agent's last words, or the daemon's own.
void note_side(const std::string& slot, std::string_view bytes) {
    constexpr std::size_t most = 500;
    core::log::warning("sandbox {}: {}", slot, bytes.substr(0, most));
}

class container_host final : public docker_host {
public:
    explicit container_host(host_parts parts) : p_(std::move(parts)), used_(p_.how) {
        if (p_.process) {
            reader_.emplace(*p_.cgroups, p_.process->cgroup);
            watch_process_ = process_watch(p_.executor, std::move(p_.process->pidfd), p_.fate->end);
        }
    }
    ~container_host() override { p_.watch->forget(p_.container, p_.fate); }

    std::string_view type() const noexcept override { return "docker"; }
    std::optional<command_user> default_user() const override { return std::nullopt; }
    bool alive() const noexcept override { return !p_.fate->end->is_past(); }
    void on_death(std::function<void()> callback) override { p_.fate->end->add(std::move(callback)); }
    std::string handle() const override { return p_.slot; }
    transport used() const noexcept override { return used_; }
    bool may_be_dialled_by() const noexcept override { return p_.process.has_value(); }

    std::optional<std::uint64_t> oom_kills() const override {
        const auto counted = reader_ ? reader_->oom_kills() : std::nullopt;
        return counted ? counted : std::optional(p_.fate->oom_kills.load());
    }

    task<result<net::stream_ptr>> connect(asio::any_io_executor executor) override;
    task<result<usage_sample>> usage() override;
    task<void> terminate(std::chrono::milliseconds grace, bool purge) override;

private:
    struct set_at_end {
        core::shared_event& event;
        ~set_at_end() { event.set(); }
    };

    [[nodiscard]] task<result<net::stream_ptr>> accept(asio::any_io_executor executor);
    [[nodiscard]] task<result<net::stream_ptr>> attach(asio::any_io_executor executor);
    [[nodiscard]] task<result<net::stream_ptr>> bridge(asio::any_io_executor executor);
    [[nodiscard]] task<void> end_only();
    [[nodiscard]] task<error> explain(docker::engine_error why);
    [[nodiscard]] docker::hijack_options stream_options() const;

    host_parts p_;
    process_watch watch_process_;
    mutable std::optional<launcher::cgroup_reader> reader_;
    std::atomic<transport> used_;
    std::shared_ptr<std::atomic<bool>> heard_; ///< on the attached stream of last time
    std::mutex sample_mutex_;
    std::optional<docker::stats_sample> last_sample_;
    std::atomic<bool> terminating_{false};
    core::shared_event terminated_;
};

docker::hijack_options container_host::stream_options() const {
    docker::hijack_options options;
    options.demultiplex = true;
    options.side = [slot = p_.slot](docker::channel, std::string_view bytes) { note_side(slot, bytes); };
    return options;
}

/// A container without our agent as its first process has the bridge only. An attach that the daemon can't
/// make again after a restart stays silent: the bridge then. A socket that nobody dials: the same.
task<result<net::stream_ptr>> container_host::connect(asio::any_io_executor executor) {
    if (!alive() || terminating_) {
        co_return error{errc::gone, "the sandbox has ended"};
    }
    if (p_.how == transport::dial && p_.process && p_.door) {
        auto dialled = co_await accept(executor);
        if (dialled) {
            used_ = transport::dial;
            co_return std::move(*dialled);
        }
        if (!alive() || terminating_) {
            co_return error{errc::gone, "the sandbox has ended"};
        }
        core::log::warning("sandbox {}: {}: going through the daemon", p_.slot, dialled.error().message);
    } else if (p_.how == transport::attach && (!heard_ || *heard_)) {
        co_return co_await attach(executor);
    }
    heard_.reset(); // next time the attach has its chance again
    co_return co_await bridge(executor);
}

/// In short waits: an agent that has ended is not waited for.
task<result<net::stream_ptr>> container_host::accept(asio::any_io_executor executor) {
    const auto until = std::chrono::steady_clock::now() + dial_limit;
    for (;;) {
        auto dialled = co_await p_.door->accept(executor, p_.process->pid, dial_slice);
        const bool late = std::chrono::steady_clock::now() >= until;
        if (dialled || dialled.error().code != errc::timeout || late || !alive() || terminating_) {
            co_return dialled;
        }
    }
}

task<result<net::stream_ptr>> container_host::attach(asio::any_io_executor executor) {
    docker::attach_options options;
    options.stream = stream_options();
    auto attached = co_await p_.engine->attach(executor, p_.container, std::move(options), hijack_limit);
    if (!attached) {
        co_return co_await explain(attached.error());
    }
    used_ = transport::attach;
    heard_ = std::make_shared<std::atomic<bool>>(false);
    co_return heard_stream(std::move(attached->stream), heard_);
}

task<result<net::stream_ptr>> container_host::bridge(asio::any_io_executor executor) {
    docker::exec_spec relay;
    relay.argv = {agent_program, "bridge", p_.slot};
    relay.attach_stdin = true;
    if (p_.how != transport::bridge) {
        relay.working_dir = "/"; // else it is where the agent will start commands: the container's own
    }
    auto made = co_await p_.engine->create_exec(p_.container, std::move(relay), hijack_limit);
    if (!made) {
        co_return co_await explain(made.error());
    }
    auto started = co_await p_.engine->start_exec(executor, *made, stream_options(), hijack_limit);
    if (!started) {
        co_return co_await explain(started.error());
    }
    used_ = transport::bridge;
    co_return std::move(started->stream);
}

/// A stream that can't be had: because the container has ended, or because the daemon is away?
task<error> container_host::explain(docker::engine_error why) {
    if (why.status == 404 || why.status == 409) {
        const auto found = co_await p_.engine->inspect(p_.container, inspect_limit);
        const bool missing = !found && found.error().status == 404;
        if (missing || (found && !found->running)) {
            p_.fate->end->tell();
            co_return error{errc::gone, "the sandbox has ended"};
        }
    }
    co_return error{errc::io, why.message};
}

task<result<usage_sample>> container_host::usage() {
    if (!alive()) {
        co_return error{errc::gone, "the sandbox has ended"};
    }
    if (reader_) {
        if (const auto sample = reader_->sample(std::chrono::steady_clock::now())) {
            co_return *sample;
        }
    }
    const auto told = co_await p_.engine->stats(p_.container, stats_limit);
    if (!told) {
        co_return error{errc::unsupported, told.error().message};
    }
    usage_sample sample;
    sample.memory_bytes = told->memory_bytes;
    sample.memory_limit_bytes = told->memory_limit_bytes;
    sample.pids = told->pids;
    const std::lock_guard lock(sample_mutex_);
    if (last_sample_) {
        sample.cpu_percent = docker::cpu_percent(*last_sample_, *told);
    }
    last_sample_ = *told;
    co_return sample;
}

/// What the container has changed stays with it, in its slot.
task<void> container_host::end_only() {
    const auto fate = p_.fate;
    const auto killed = co_await p_.engine->kill(p_.container, "KILL", remove_limit);
    if (!killed) {
        core::log::warning("sandbox {} is not ended yet: {}", p_.slot, killed.error().message);
        p_.watch->end_later(p_.slot);
    } else {
        static_cast<void>(co_await fate->end->event().wait_for(end_limit));
    }
    p_.watch->forget(p_.container, p_.fate);
    fate->end->tell();
}

task<void> container_host::terminate(std::chrono::milliseconds grace, bool purge) {
    if (terminating_.exchange(true)) {
        co_await terminated_.wait();
        co_return;
    }
    const set_at_end finished{terminated_};
    const auto fate = p_.fate;
    static_cast<void>(co_await fate->end->event().wait_for(grace));
    if (p_.keep && !purge) {
        co_await end_only();
        co_return;
    }
    const auto removed = co_await p_.engine->remove(p_.container, true, remove_limit);
    if (!removed) {
        core::log::warning("sandbox {} is not removed yet: {}", p_.slot, removed.error().message);
        p_.watch->remove_later(p_.slot);
    }
    p_.watch->forget(p_.container, p_.fate);
    if (!p_.door_directory.empty()) {
        remove_dial_directory(p_.door_directory);
    }
    fate->end->tell();
}

} // namespace

std::shared_ptr<docker_host> create_host(host_parts parts) {
    return std::make_shared<container_host>(std::move(parts));
}

} // namespace sandboxd::sandboxes::docker_backend
