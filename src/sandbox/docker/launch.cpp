#include "sandbox/docker/launch.hpp"

#include "core/log.hpp"
#include "sandbox/docker/images.hpp"

#include <boost/json/array.hpp>

#include <sys/stat.h>

#include <algorithm>
#include <utility>

namespace sandboxd::sandboxes::docker_backend {

namespace {

using namespace std::chrono_literals;

constexpr auto inspect_limit = 10s;
constexpr auto remove_limit = 30s;
constexpr int most_attempts = 4;
constexpr std::size_t most_sentences = 100;
constexpr std::int64_t least_open_files = 1024;

error as_start_failure(const error& from) {
    return {from.code == errc::capacity ? errc::capacity : errc::start_failed, from.message, false};
}

bool says(const std::string& message, std::string_view what) {
    return message.find(what) != std::string::npos;
}

/// One container: the settings and what the image adds to them.
struct order {
    sandbox_spec spec;
    std::string slot;
    docker::image_details image;
    std::string volume;
    bool dials = false;
    std::optional<dial_in> door; ///< open while it dials
    // What the last attempt asked for: others may have found meanwhile that the daemon can't give it.
    std::int64_t open_files = 0;
    bool protects_agent = false;
};

std::string runtime_of(const sandbox_spec& spec) {
    return spec.oci_runtime.value_or("");
}

bool dialling_works(workshop& in, const std::string& runtime) {
    // Those whose processes are the host's. Others (gVisor, virtual machines) are attached to from the start.
    static const std::set<std::string> of_the_host{"", "runc", "crun", "io.containerd.runc.v2"};
    const std::lock_guard lock(in.mutex);
    return of_the_host.contains(runtime) && !in.without_dialling.contains(runtime);
}

/// True the first time.
bool give_up_dialling(workshop& in, const std::string& runtime) {
    const std::lock_guard lock(in.mutex);
    return in.without_dialling.insert(runtime).second;
}

docker::container_spec settings_of(const workshop& in, const order& of) {
    docker::container_place place;
    place.service_uuid = in.options.service_uuid;
    place.slot = of.slot;
    place.agent_volume = of.volume;
    place.agent_mount = agent_mount;
    place.agent_argv = {agent_program, "serve"};
    if (of.dials) {
        place.agent_argv.insert(place.agent_argv.end(),
                                {"--dial", std::string(link_mount) + "/" + dial_socket});
        place.listener_dir = door_directory(in, of.slot);
        place.listener_mount = link_mount;
    } else {
        place.agent_argv.emplace_back("--stdio");
    }
    place.agent_argv.insert(place.agent_argv.end(), {"--bridge", of.slot});
    const auto& entrypoint = of.image.entrypoint;
    if (!entrypoint.empty() && !entrypoint.front().empty()) {
        place.agent_argv.emplace_back("--entrypoint");
        place.agent_argv.insert(place.agent_argv.end(), entrypoint.begin(), entrypoint.end());
        place.agent_argv.insert(place.agent_argv.end(), {"sleep", "infinity"});
    }
    place.open_files = of.open_files;
    place.protect_agent = of.protects_agent;
    auto made = docker::container_for(of.spec, place);
    made.image = of.image.id; // the name may point elsewhere by now
    return made;
}

/// Created, started, its agent heard. The slot's containers are the caller's to remove on failure.
task<result<std::shared_ptr<sandbox>>> start_one(std::shared_ptr<workshop> in, order& of) {
    const auto began = std::chrono::steady_clock::now();
    const auto& engine = in->options.engine;
    of.open_files = in->open_files;
    of.protects_agent = in->protect_agents;
    auto wanted = settings_of(*in, of);
    auto created = co_await engine->create(wanted, in->options.start_limit);
    if (!created) {
        if (created.error().may_have_happened) {
            in->watch->remove_later(of.slot);
        }
        co_return created.error();
    }
    for (const auto& warning : created->warnings) {
        core::log::debug("docker: {}", warning);
    }
    const auto there = std::chrono::steady_clock::now();
    auto started = co_await engine->start(created->id, in->options.start_limit);
    if (!started) {
        co_return started.error();
    }
    const auto runs = std::chrono::steady_clock::now();
    auto host = co_await host_of(in, of.slot, created->id, std::exchange(of.door, std::nullopt), &wanted);
    if (!host) {
        co_return host.error();
    }
    const auto runtime = runtime_of(of.spec);
    if (of.dials && !(*host)->may_be_dialled_by()) {
        // gVisor without cgroups; a service in a container that does not see the daemon's processes.
        if (give_up_dialling(*in, runtime)) {
            core::log::info(
                "processes of runtime '{}' are not known by their pids: their agents are attached to",
                runtime);
        }
        co_return error{errc::start_failed, "the agent's process is not to be seen"};
    }
    auto made = co_await in->options.factory(*host, false);
    if (of.dials && (!made || (*host)->used() != transport::dial) && give_up_dialling(*in, runtime)) {
        core::log::warning("agents under runtime '{}' can't dial this service: the next ones are attached to",
                           runtime);
    }
    const auto ms = [](auto from, auto to) {
        return std::chrono::duration_cast<std::chrono::milliseconds>(to - from).count();
    };
    core::log::debug("sandbox {}: created in {} ms, started in {} ms, agent in {} ms", of.slot,
                     ms(began, there), ms(there, runs), ms(runs, std::chrono::steady_clock::now()));
    co_return made;
}

/// True when the cause of a failed start was put right.
task<bool> put_right(std::shared_ptr<workshop> in, order& of, const error& why, unsigned filled) {
    if (says(why.message, "rlimit") && of.open_files > least_open_files) {
        const auto fewer = std::max(least_open_files, of.open_files / 4);
        if (auto asked = of.open_files; in->open_files.compare_exchange_strong(asked, fewer)) {
            core::log::warning("the docker daemon can't give {} open files to a sandbox: trying {}",
                               of.open_files, fewer);
        }
        co_return true;
    }
    // runc's own words for a refused out-of-memory score say nothing of it.
    const bool score = says(why.message, "oom_score_adj") || says(why.message, "final child's PID");
    if (score && of.protects_agent) {
        if (in->protect_agents.exchange(false)) {
            core::log::warning(
                "the docker daemon can't spare agents when memory runs out: it lacks CAP_SYS_RESOURCE");
        }
        co_return true;
    }
    if (says(why.message, agent_program) || says(why.message, of.volume)) {
        co_return (co_await in->agents->refill(of.image, filled)).has_value();
    }
    if (of.dials && says(why.message, door_directory(*in, of.slot))) {
        give_up_dialling(*in, runtime_of(of.spec));
    }
    if (of.dials && !dialling_works(*in, runtime_of(of.spec))) {
        of.dials = false;
        of.door.reset();
        co_return true;
    }
    co_return false;
}

/// A limit that is not kept is never passed over in silence; once is enough.
void say_differences(workshop& in, const docker::container_spec& wanted,
                     const docker::container_details& found) {
    for (auto& sentence : docker::differences(wanted, found)) {
        const std::lock_guard lock(in.mutex);
        if (in.said.size() < most_sentences && in.said.insert(sentence).second) {
            core::log::warning("{}", sentence);
        }
    }
}

/// Is the agent its first process?
bool runs_agent(const docker::container_details& found) {
    const auto* entrypoint = found.config.if_contains("Entrypoint");
    const auto* argv = entrypoint == nullptr ? nullptr : entrypoint->if_array();
    return argv != nullptr && !argv->empty() && argv->front().is_string() &&
           argv->front().get_string() == agent_program;
}

} // namespace

std::string door_directory(const workshop& in, const std::string& slot) {
    return in.options.state_directory + "/docker/" + slot;
}

result<std::optional<dial_in>> door_of(const workshop& in, const std::string& slot) {
    const auto directory = door_directory(in, slot);
    if (struct stat made{}; ::stat(directory.c_str(), &made) != 0) {
        return std::optional<dial_in>();
    }
    auto opened = dial_in::open(directory);
    if (!opened) {
        return opened.error();
    }
    return std::optional<dial_in>(std::move(*opened));
}

docker::filter_list slot_filters(const workshop& in, const std::string& slot) {
    return {{"label", std::string(docker::label_service) + "=" + in.options.service_uuid},
            {"label", std::string(docker::label_slot) + "=" + slot}};
}

task<result<std::shared_ptr<docker_host>>> host_of(std::shared_ptr<workshop> in, std::string slot,
                                                   std::string container, std::optional<dial_in> door,
                                                   const docker::container_spec* wanted) {
    host_parts parts;
    parts.executor = in->options.executor;
    parts.engine = in->options.engine;
    parts.watch = in->watch;
    parts.slot = slot;
    parts.container = container;
    parts.fate = std::make_shared<container_fate>();
    parts.how = door ? transport::dial : transport::attach;
    if (door) {
        parts.door_directory = door_directory(*in, slot);
        parts.door = std::move(door);
    }
    parts.cgroups = &in->cgroups;
    // Watched first, looked at then: an end in between is not missed.
    in->watch->add(container, parts.fate);
    auto found = co_await in->options.engine->inspect(container, inspect_limit);
    if (!found || !found->running) {
        in->watch->forget(container, parts.fate);
        if (!found && found.error().status != 404) {
            co_return static_cast<const error&>(found.error());
        }
        co_return error{errc::gone, found ? "the container ended at once (" + found->status +
                                                (found->state_error.empty() ? "" : ", ") +
                                                found->state_error + ")"
                                          : "the container is gone"};
    }
    if (wanted != nullptr) {
        say_differences(*in, *wanted, *found);
    }
    parts.keep = std::any_of(found->labels.begin(), found->labels.end(),
                             [](const auto& label) { return label.first == docker::label_keep; });
    if (!runs_agent(*found)) {
        core::log::info("container {} runs without the agent: entering it through the bridge", container);
        if (auto copied = co_await in->agents->copy_into(container, found->image_id); !copied) {
            in->watch->forget(container, parts.fate);
            co_return copied.error();
        }
        parts.how = transport::bridge;
    }
    if (in->options.may_be_local) {
        parts.process = find_process(static_cast<pid_t>(found->pid), container);
    }
    co_return create_host(std::move(parts));
}

task<result<std::shared_ptr<sandbox>>> launch(std::shared_ptr<workshop> in, sandbox_spec spec,
                                              std::string slot) {
    order of;
    auto image = co_await find_image(in->options.engine, in->options.images, spec.image);
    if (!image) {
        co_return image.error();
    }
    of.image = std::move(*image);
    auto volume = co_await in->agents->find(of.image);
    if (!volume) {
        co_return volume.error();
    }
    of.spec = std::move(spec);
    of.slot = std::move(slot);
    of.volume = std::move(*volume);
    of.dials = dialling_works(*in, runtime_of(of.spec)) && in->agents->daemon_is_local();
    for (int attempt = 1;; ++attempt) {
        const auto filled = in->agents->filled_count();
        if (of.dials) {
            // There before the daemon is asked to bind it.
            if (auto door = dial_in::open(door_directory(*in, of.slot))) {
                of.door = std::move(*door);
            } else {
                core::log::warning("{}: the agent is attached to instead", door.error().message);
                of.dials = false;
            }
        }
        auto made = co_await start_one(in, of);
        if (made) {
            co_return made;
        }
        auto why = as_start_failure(made.error());
        if (auto removed = co_await remove_slot(in, of.slot); !removed) {
            in->watch->remove_later(of.slot);
            co_return why;
        }
        if (attempt == most_attempts || !co_await put_right(in, of, why, filled)) {
            co_return why;
        }
    }
}

task<result<void>> remove_slot(std::shared_ptr<workshop> in, std::string slot) {
    auto removed =
        co_await docker::remove_matching(in->options.engine, slot_filters(*in, slot), remove_limit);
    remove_dial_directory(door_directory(*in, slot));
    if (!removed) {
        co_return static_cast<const error&>(removed.error());
    }
    co_return result<void>();
}

} // namespace sandboxd::sandboxes::docker_backend
