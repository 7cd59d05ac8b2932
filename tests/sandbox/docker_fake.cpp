#include "docker_fake.hpp"

#include "core/deadline.hpp"
#include "net/connect.hpp"

#include <algorithm>
#include <fstream>

namespace sandboxd::test {

using namespace docker;
using std::chrono::milliseconds;

engine_error daemon_says(int status, std::string words) {
    engine_error made;
    made.code = status == 404 ? errc::not_found : errc::io;
    made.status = status;
    made.message = std::move(words);
    return made;
}

void fake_daemon::add_image(const std::string& name, std::vector<std::string> entrypoint) {
    image_details made;
    made.id = "sha256:" + name;
    made.os = "linux";
    made.architecture = "amd64";
    made.entrypoint = std::move(entrypoint);
    images[name] = std::move(made);
}

void fake_daemon::tell(const std::string& action, const std::string& id) {
    engine_event one;
    one.type = "container";
    one.action = action;
    one.id = id;
    if (sink_.event) {
        sink_.event(one);
    }
}

void fake_daemon::end(const std::string& id, bool told) {
    containers.at(id).state = "exited";
    if (told) {
        tell("die", id);
    }
}

void fake_daemon::reconnect() {
    sink_.lost(daemon_says(0, "the stream broke"));
    sink_.connected(true);
}

std::size_t fake_daemon::count(const std::string& call) const {
    return static_cast<std::size_t>(std::count(calls.begin(), calls.end(), call));
}

answer<void> fake_daemon::begin(const std::string& call) {
    calls.push_back(call);
    if (away) {
        return *away;
    }
    return {};
}

task<answer<api_version>> fake_daemon::ping(milliseconds) {
    if (auto ok = begin("ping"); !ok) {
        co_return ok.error();
    }
    co_return api_version{1, 41};
}

task<answer<version_info>> fake_daemon::version(milliseconds) {
    co_return version_info{};
}

task<answer<engine_info>> fake_daemon::info(milliseconds) {
    if (auto ok = begin("info"); !ok) {
        co_return ok.error();
    }
    co_return facts;
}

task<answer<created_container>> fake_daemon::create(container_spec spec, milliseconds) {
    if (auto ok = begin("create"); !ok) {
        co_return ok.error();
    }
    std::optional<engine_error> failed;
    if (!create_errors.empty()) {
        failed = create_errors.front();
        create_errors.pop_front();
    }
    created.push_back(spec);
    const auto id = "container-" + std::to_string(next_++);
    if (!failed || creates_late) {
        for (const auto& mount : spec.mounts) {
            if (mount.type == mount::kind::volume) {
                volumes.try_emplace(mount.source); // as the daemon does
            }
        }
        containers[id].spec = std::move(spec);
    }
    if (failed) {
        co_return *failed;
    }
    co_return created_container{id, {}};
}

task<answer<outcome>> fake_daemon::start(std::string id, milliseconds) {
    if (auto ok = begin("start"); !ok) {
        co_return ok.error();
    }
    if (!start_errors.empty()) {
        auto failed = start_errors.front();
        start_errors.pop_front();
        co_return failed;
    }
    if (starts_that_meet > 0) {
        if (--starts_that_meet == 0) {
            all_have_come_.set();
        }
        co_await all_have_come_.wait();
    }
    const auto& asked = containers.at(id).spec;
    if (asked.oom_score_adj && !gives_scores) {
        co_return daemon_says(400, "runc create failed: unable to start container process: can't get final "
                                   "child's PID from pipe: EOF: unknown");
    }
    for (const auto& one : asked.ulimits) {
        if (one.hard > most_open_files) {
            co_return daemon_says(400, "error setting rlimit type 7: operation not permitted: unknown");
        }
    }
    containers.at(id).state = "running";
    co_return outcome::done;
}

task<answer<outcome>> fake_daemon::stop(std::string, std::chrono::seconds, milliseconds) {
    co_return outcome::done;
}

task<answer<outcome>> fake_daemon::kill(std::string id, std::string, milliseconds) {
    if (auto ok = begin("kill"); !ok) {
        co_return ok.error();
    }
    if (containers.at(id).state != "running" && containers.at(id).state != "paused") {
        co_return outcome::already;
    }
    end(id);
    co_return outcome::done;
}

task<answer<outcome>> fake_daemon::unpause(std::string id, milliseconds) {
    if (auto ok = begin("unpause"); !ok) {
        co_return ok.error();
    }
    if (containers.at(id).state != "paused") {
        co_return daemon_says(409, "Container " + id + " is not paused");
    }
    containers.at(id).state = "running";
    co_return outcome::done;
}

task<answer<void>> fake_daemon::rename(std::string, std::string, milliseconds) {
    co_return answer<void>();
}

task<answer<outcome>> fake_daemon::remove(std::string id, bool, milliseconds) {
    if (auto ok = begin("remove"); !ok) {
        co_return ok.error();
    }
    co_return containers.erase(id) != 0 ? outcome::done : outcome::missing;
}

task<answer<container_details>> fake_daemon::inspect(std::string id, milliseconds) {
    if (auto ok = begin("inspect"); !ok) {
        co_return ok.error();
    }
    const auto found = containers.find(id);
    if (found == containers.end()) {
        co_return daemon_says(404, "No such container: " + id);
    }
    container_details told;
    told.id = id;
    told.status = found->second.state;
    told.paused = found->second.state == "paused";
    told.running = told.paused || found->second.state == "running"; // as the daemon has it
    told.labels = found->second.spec.labels;
    boost::json::array entrypoint;
    for (const auto& word : found->second.spec.entrypoint.value_or(std::vector<std::string>())) {
        entrypoint.emplace_back(word);
    }
    told.config["Entrypoint"] = std::move(entrypoint);
    co_return told;
}

task<answer<std::vector<container_summary>>> fake_daemon::list(filter_list filters, milliseconds) {
    if (auto ok = begin("list"); !ok) {
        co_return ok.error();
    }
    std::vector<container_summary> found;
    for (const auto& [id, one] : containers) {
        const auto fits = [&](const auto& filter) {
            const auto& labels = one.spec.labels;
            return filter.first != "label" ||
                   std::any_of(labels.begin(), labels.end(), [&](const auto& label) {
                       return label.first + "=" + label.second == filter.second;
                   });
        };
        if (std::all_of(filters.begin(), filters.end(), fits)) {
            found.push_back({id, one.spec.name, one.spec.image, one.state, one.spec.labels});
        }
    }
    co_return found;
}

task<answer<wait_result>> fake_daemon::wait(std::string, std::string, milliseconds) {
    co_return wait_result{};
}

task<answer<stats_sample>> fake_daemon::stats(std::string, milliseconds) {
    if (auto ok = begin("stats"); !ok) {
        co_return ok.error();
    }
    stats_sample sample;
    sample.memory_bytes = 4096;
    sample.pids = 2;
    sample.cpu_ns = 1'000'000 * count("stats");
    sample.system_cpu_ns = 10'000'000 * count("stats");
    sample.online_cpus = 2;
    co_return sample;
}

task<answer<void>> fake_daemon::put_archive(std::string id, std::string path, std::string tar, milliseconds) {
    if (auto ok = begin("put_archive"); !ok) {
        co_return ok.error();
    }
    auto& into = containers.at(id);
    for (const auto& mount : into.spec.mounts) {
        if (local && mount.type == mount::kind::bind && mount.destination == path) {
            // A header of 512 bytes, with the name and the size in it, then the content.
            const auto size = std::stoul(tar.substr(124, 11), nullptr, 8);
            std::ofstream(mount.source + "/" + tar.c_str(), std::ios::binary) << tar.substr(512, size);
        }
    }
    into.archives[path] = std::move(tar);
    co_return answer<void>();
}

answer<hijacked> fake_daemon::stream(const boost::asio::any_io_executor& executor) {
    auto [ours, agents_end] = net::memory_pair(executor);
    agents.push_back(std::move(agents_end));
    hijacked made;
    made.stream = std::move(ours);
    return made;
}

task<answer<std::string>> fake_daemon::create_exec(std::string, exec_spec spec, milliseconds) {
    if (auto ok = begin("create_exec"); !ok) {
        co_return ok.error();
    }
    execs.push_back(std::move(spec));
    co_return std::string("exec-1");
}

task<answer<hijacked>> fake_daemon::start_exec(boost::asio::any_io_executor executor, std::string,
                                               hijack_options, milliseconds) {
    if (auto ok = begin("start_exec"); !ok) {
        co_return ok.error();
    }
    co_return stream(executor);
}

task<answer<exec_state>> fake_daemon::inspect_exec(std::string, milliseconds) {
    co_return exec_state{};
}

task<answer<hijacked>> fake_daemon::attach(boost::asio::any_io_executor executor, std::string id,
                                           attach_options, milliseconds) {
    if (auto ok = begin("attach"); !ok) {
        co_return ok.error();
    }
    const auto found = containers.find(id);
    if (found == containers.end() || found->second.state != "running") {
        co_return daemon_says(409, "Container " + id + " is not running");
    }
    co_return stream(executor);
}

task<answer<image_details>> fake_daemon::inspect_image(std::string reference, milliseconds) {
    if (auto ok = begin("inspect_image"); !ok) {
        co_return ok.error();
    }
    const auto found = images.find(reference);
    if (found == images.end()) {
        co_return daemon_says(404, "No such image: " + reference);
    }
    co_return found->second;
}

task<answer<void>> fake_daemon::pull(std::string reference, std::string,
                                     std::function<void(const pull_progress&)> progress, milliseconds) {
    if (auto ok = begin("pull"); !ok) {
        co_return ok.error();
    }
    ++pulls;
    co_await core::sleep_for(milliseconds(20)); // the others come meanwhile
    if (pull_error) {
        co_return *pull_error;
    }
    progress({"layer", "Downloading", 10, 20});
    add_image(reference);
    co_return answer<void>();
}

task<answer<void>> fake_daemon::build(build_request what, std::function<void(const std::string&)> line,
                                      milliseconds) {
    if (auto ok = begin("build"); !ok) {
        co_return ok.error();
    }
    builds.push_back(what);
    co_await core::sleep_for(milliseconds(20)); // the others come meanwhile
    line("Step 1/2 : FROM debian");
    line(" ---> 0123456789ab");
    line("Step 2/2 : RUN something");
    line("it says a word");
    if (!build_errors.empty()) {
        auto failed = build_errors.front();
        build_errors.pop_front();
        co_return failed;
    }
    add_image(what.tag);
    co_return answer<void>();
}

task<answer<outcome>> fake_daemon::remove_image(std::string reference, bool, milliseconds) {
    if (auto ok = begin("remove_image"); !ok) {
        co_return ok.error();
    }
    if (used.contains(reference)) {
        co_return daemon_says(409, "image is being used by a container");
    }
    images.erase(reference);
    co_return outcome::done;
}

task<answer<std::vector<image_summary>>> fake_daemon::list_images(filter_list, milliseconds) {
    std::vector<image_summary> all;
    for (const auto& [name, details] : images) {
        all.push_back({details.id, {name}, std::nullopt});
    }
    co_return all;
}

task<answer<volume_details>> fake_daemon::create_volume(std::string name, text_pairs labels, milliseconds) {
    if (auto ok = begin("create_volume"); !ok) {
        co_return ok.error();
    }
    volumes[name] = std::move(labels);
    co_return volume_details{name, "local", "", volumes[name]};
}

task<answer<volume_details>> fake_daemon::inspect_volume(std::string name, milliseconds) {
    if (auto ok = begin("inspect_volume"); !ok) {
        co_return ok.error();
    }
    if (!volumes.contains(name)) {
        co_return daemon_says(404, "no such volume: " + name);
    }
    co_return volume_details{name, "local", "", volumes[name]};
}

task<answer<outcome>> fake_daemon::remove_volume(std::string name, milliseconds) {
    co_return volumes.erase(name) != 0 ? outcome::done : outcome::missing;
}

task<void> fake_daemon::watch_events(filter_list, event_sink sink) {
    sink_ = std::move(sink);
    watched = true;
    sink_.connected(false);
    while (co_await core::sleep_for(std::chrono::hours(1))) {
    }
    sink_ = {};
    watched = false;
}

} // namespace sandboxd::test
