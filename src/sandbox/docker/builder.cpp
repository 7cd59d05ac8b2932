#include "sandbox/docker/builder.hpp"

#include "core/log.hpp"
#include "core/random.hpp"
#include "sandbox/docker/launch.hpp"

#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <set>

namespace sandboxd::sandboxes::docker_backend {

namespace {

using namespace std::chrono_literals;

constexpr auto call_limit = 15s;
constexpr std::size_t slot_bytes = 12;
constexpr std::int64_t most_open_files = 65'536;

bool is_slot(std::string_view name) {
    constexpr std::size_t longest = 64;
    return !name.empty() && name.size() <= longest && std::all_of(name.begin(), name.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
    });
}

std::string label(const docker::text_pairs& labels, std::string_view name) {
    const auto found =
        std::find_if(labels.begin(), labels.end(), [&](const auto& one) { return one.first == name; });
    return found == labels.end() ? std::string() : found->second;
}

/// What the daemon says of itself that touches what we promise.
std::vector<std::string> notes_of(const docker::engine_info& info) {
    std::vector<std::string> notes;
    for (const auto& warning : info.warnings) {
        for (const std::string_view subject : {"memory limit", "swap limit", "cpu", "pids"}) {
            if (warning.find(subject) != std::string::npos) {
                notes.push_back("the docker daemon says: " + warning);
                break;
            }
        }
    }
    if (info.rootless) {
        notes.emplace_back("the docker daemon is rootless: limits hold only as far as its user's cgroup "
                           "delegation goes, and agents are not spared when memory runs out");
    }
    return notes;
}

/// A daemon on this host can't give more than it has; one elsewhere is asked for the usual.
std::int64_t open_files_here(bool local) {
    rlimit own{};
    if (!local || ::getrlimit(RLIMIT_NOFILE, &own) != 0 || own.rlim_max == RLIM_INFINITY) {
        return most_open_files;
    }
    return std::min<std::int64_t>(most_open_files, static_cast<std::int64_t>(own.rlim_max));
}

class docker_builder final : public sandbox_builder {
public:
    docker_builder(std::shared_ptr<workshop> in, docker::engine_info info)
        : in_(std::move(in)), info_(std::move(info)), notes_(notes_of(info_)) {}
    ~docker_builder() override { in_->watch->close(); }

    std::string_view name() const noexcept override { return "docker"; }
    std::vector<std::string> notes() const override { return notes_; }
    std::optional<std::string> degraded() const override { return in_->watch->degraded(); }

    task<result<slot_record>> prepare(const sandbox_spec& spec) override {
        if (auto ok = check(spec); !ok) {
            co_return ok.error();
        }
        const auto slot = core::random_hex(slot_bytes);
        co_return slot_record{slot, "docker", slot};
    }

    task<result<std::shared_ptr<sandbox>>> build(sandbox_spec spec, slot_record slot) override {
        if (auto ok = check(spec); !ok) {
            co_return ok.error();
        }
        if (spec.keep != keeping::nothing) {
            co_return co_await wake(in_, std::move(spec), slot.slot);
        }
        co_return co_await launch(in_, std::move(spec), slot.slot);
    }

    task<result<std::shared_ptr<sandbox>>> adopt(slot_record slot) override;
    task<result<void>> remove(slot_record slot) override {
        if (!is_slot(slot.slot)) {
            co_return result<void>();
        }
        co_return co_await remove_slot(in_, slot.slot);
    }
    task<result<std::vector<slot_record>>> owned() override;

private:
    [[nodiscard]] result<void> check(const sandbox_spec& spec) const;
    [[nodiscard]] docker::filter_list ours() const {
        return {{"label", std::string(docker::label_service) + "=" + in_->options.service_uuid}};
    }

    std::shared_ptr<workshop> in_;
    docker::engine_info info_;
    std::vector<std::string> notes_;
};

result<void> docker_builder::check(const sandbox_spec& spec) const {
    if (auto ok = check_spec(spec); !ok) {
        return ok;
    }
    const auto& known = info_.runtimes;
    if (spec.oci_runtime && std::find(known.begin(), known.end(), *spec.oci_runtime) == known.end()) {
        std::string names;
        for (const auto& one : known) {
            names += (names.empty() ? "" : ", ") + one;
        }
        return error{errc::start_failed, "oci_runtime '" + *spec.oci_runtime +
                                             "' is not registered with the docker daemon: it has " + names};
    }
    return {};
}

task<result<std::shared_ptr<sandbox>>> docker_builder::adopt(slot_record slot) {
    if (!is_slot(slot.slot)) {
        co_return error{errc::gone, "the record names no slot of this backend"};
    }
    auto listed = co_await in_->options.engine->list(slot_filters(*in_, slot.slot), call_limit);
    if (!listed) {
        co_return static_cast<const error&>(listed.error());
    }
    const auto running = std::find_if(listed->begin(), listed->end(), [](const auto& one) {
        return one.state == "running" || one.state == "paused";
    });
    if (running == listed->end()) {
        co_return error{errc::gone, "its container does not run any more"};
    }
    if (running->state == "paused") { // all it holds is there, and its agent can't answer (contract 4.2)
        auto unpaused = co_await in_->options.engine->unpause(running->id, call_limit);
        if (!unpaused) {
            co_return static_cast<const error&>(unpaused.error());
        }
        core::log::warning("sandbox {} was paused: it goes on", slot.slot);
    }
    // What an agent was told when it was made is what it goes on doing.
    auto door = door_of(*in_, slot.slot);
    if (!door) {
        co_return door.error();
    }
    auto host = co_await host_of(in_, slot.slot, running->id, std::move(*door), nullptr);
    if (!host) {
        co_return host.error();
    }
    co_return co_await in_->options.factory(*host, true);
}

task<result<std::vector<slot_record>>> docker_builder::owned() {
    auto listed = co_await in_->options.engine->list(ours(), call_limit);
    if (!listed) {
        co_return static_cast<const error&>(listed.error());
    }
    std::set<std::string> slots;
    for (const auto& one : *listed) {
        slots.insert(label(one.labels, docker::label_slot));
    }
    std::error_code failed;
    for (std::filesystem::directory_iterator each(in_->options.state_directory + "/docker", failed), end;
         !failed && each != end; each.increment(failed)) {
        slots.insert(each->path().filename().string());
    }
    std::vector<slot_record> records;
    for (const auto& slot : slots) {
        if (is_slot(slot)) {
            records.push_back({slot, "docker", slot});
        }
    }
    co_return records;
}

} // namespace

task<result<std::shared_ptr<sandbox_builder>>> create_builder(builder_options options) {
    auto info = co_await options.engine->info(call_limit);
    if (!info) {
        co_return error{errc::start_failed, info.error().message};
    }
    if (!info->os_type.empty() && info->os_type != "linux") {
        co_return error{errc::start_failed,
                        "the docker daemon runs " + info->os_type + " containers: sandboxes are Linux only"};
    }
    const auto doors = options.state_directory + "/docker";
    if (::mkdir(doors.c_str(), 0700) != 0 && errno != EEXIST) {
        co_return os_error("creating " + doors, errno);
    }
    agent_volume_options agents;
    agents.engine = options.engine;
    agents.service_uuid = options.service_uuid;
    agents.program = options.agent_program;
    agents.proof_directory = options.may_be_local ? doors + "/.proof" : std::string();
    auto in = std::make_shared<workshop>();
    in->agents = std::make_shared<agent_volume>(std::move(agents));
    in->watch = std::make_shared<daemon_watch>(options.executor, *options.background, options.engine,
                                               options.service_uuid, options.look_every);
    in->cgroups = launcher::read_cgroup_layout();
    in->protect_agents = !info->rootless;
    in->open_files = open_files_here(options.may_be_local);
    in->options = std::move(options);
    in->watch->begin();
    std::shared_ptr<sandbox_builder> made = std::make_shared<docker_builder>(std::move(in), std::move(*info));
    co_return made;
}

} // namespace sandboxd::sandboxes::docker_backend
