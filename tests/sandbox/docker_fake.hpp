#pragma once

// A daemon in memory behind the interface of the Engine client: containers, images, volumes, events, and the
// ways in which a daemon fails.

#include "core/event.hpp"
#include "docker/engine.hpp"

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace sandboxd::test {

class fake_daemon final : public docker::engine {
public:
    struct container {
        docker::container_spec spec;
        std::string state = "created";
        std::map<std::string, std::string> archives; ///< what was put where
    };

    explicit fake_daemon(boost::asio::any_io_executor executor) : executor_(std::move(executor)) {}

    // What it has.
    std::map<std::string, container> containers; ///< by id
    std::map<std::string, docker::image_details> images;
    std::map<std::string, docker::text_pairs> volumes;
    docker::engine_info facts;

    // What was asked.
    std::vector<std::string> calls; ///< "create", "start", ...
    std::vector<docker::container_spec> created;
    std::vector<docker::exec_spec> execs;
    std::vector<net::stream_ptr> agents; ///< the agents' ends of attached and exec'd streams
    int pulls = 0;
    std::vector<docker::build_request> builds;
    bool watched = false; ///< somebody follows the events

    // How it fails.
    std::optional<docker::engine_error> away;      ///< of every call
    std::deque<docker::engine_error> start_errors; ///< of the next starts
    std::deque<docker::engine_error> create_errors;
    std::optional<docker::engine_error> pull_error;
    std::deque<docker::engine_error> build_errors; ///< of the next builds
    std::set<std::string> used;                    ///< images that can't be removed
    bool gives_scores = true;                      ///< a start with an out-of-memory score works
    std::int64_t most_open_files = 1 << 20;        ///< a start with more does not
    int starts_that_meet = 0;  ///< so many of the next starts are answered when the last has come
    bool local = false;        ///< it runs on this host: what is put where a directory is bound appears there
    bool creates_late = false; ///< a create that fails has made the container all the same

    void add_image(const std::string& name, std::vector<std::string> entrypoint = {});
    /// The container's first process ends, and the daemon says so.
    void end(const std::string& id, bool tell = true);
    void tell(const std::string& action, const std::string& id);
    /// The event stream is lost and had again.
    void reconnect();
    [[nodiscard]] std::size_t count(const std::string& call) const;

    task<docker::answer<docker::api_version>> ping(std::chrono::milliseconds) override;
    task<docker::answer<docker::version_info>> version(std::chrono::milliseconds) override;
    task<docker::answer<docker::engine_info>> info(std::chrono::milliseconds) override;
    task<docker::answer<docker::created_container>> create(docker::container_spec spec,
                                                           std::chrono::milliseconds) override;
    task<docker::answer<docker::outcome>> start(std::string id, std::chrono::milliseconds) override;
    task<docker::answer<docker::outcome>> stop(std::string id, std::chrono::seconds,
                                               std::chrono::milliseconds) override;
    task<docker::answer<docker::outcome>> kill(std::string id, std::string,
                                               std::chrono::milliseconds) override;
    task<docker::answer<docker::outcome>> unpause(std::string id, std::chrono::milliseconds) override;
    task<docker::answer<void>> rename(std::string id, std::string, std::chrono::milliseconds) override;
    task<docker::answer<docker::outcome>> remove(std::string id, bool, std::chrono::milliseconds) override;
    task<docker::answer<docker::container_details>> inspect(std::string id,
                                                            std::chrono::milliseconds) override;
    task<docker::answer<std::vector<docker::container_summary>>> list(docker::filter_list filters,
                                                                      std::chrono::milliseconds) override;
    task<docker::answer<docker::wait_result>> wait(std::string, std::string,
                                                   std::chrono::milliseconds) override;
    task<docker::answer<docker::stats_sample>> stats(std::string, std::chrono::milliseconds) override;
    task<docker::answer<void>> put_archive(std::string id, std::string path, std::string tar,
                                           std::chrono::milliseconds) override;
    task<docker::answer<std::string>> create_exec(std::string, docker::exec_spec spec,
                                                  std::chrono::milliseconds) override;
    task<docker::answer<docker::hijacked>> start_exec(boost::asio::any_io_executor executor, std::string,
                                                      docker::hijack_options,
                                                      std::chrono::milliseconds) override;
    task<docker::answer<docker::exec_state>> inspect_exec(std::string, std::chrono::milliseconds) override;
    task<docker::answer<docker::hijacked>> attach(boost::asio::any_io_executor executor, std::string id,
                                                  docker::attach_options, std::chrono::milliseconds) override;
    task<docker::answer<docker::image_details>> inspect_image(std::string reference,
                                                              std::chrono::milliseconds) override;
    task<docker::answer<void>> pull(std::string reference, std::string,
                                    std::function<void(const docker::pull_progress&)> progress,
                                    std::chrono::milliseconds) override;
    task<docker::answer<void>> build(docker::build_request what, std::function<void(const std::string&)> line,
                                     std::chrono::milliseconds) override;
    task<docker::answer<docker::outcome>> remove_image(std::string reference, bool,
                                                       std::chrono::milliseconds) override;
    task<docker::answer<std::vector<docker::image_summary>>> list_images(docker::filter_list,
                                                                         std::chrono::milliseconds) override;
    task<docker::answer<docker::volume_details>> create_volume(std::string name, docker::text_pairs labels,
                                                               std::chrono::milliseconds) override;
    task<docker::answer<docker::volume_details>> inspect_volume(std::string name,
                                                                std::chrono::milliseconds) override;
    task<docker::answer<docker::outcome>> remove_volume(std::string name, std::chrono::milliseconds) override;
    task<void> watch_events(docker::filter_list filters, docker::event_sink sink) override;

private:
    [[nodiscard]] docker::answer<void> begin(const std::string& call);
    [[nodiscard]] docker::answer<docker::hijacked> stream(const boost::asio::any_io_executor& executor);

    boost::asio::any_io_executor executor_;
    docker::event_sink sink_;
    core::event all_have_come_{executor_};
    int next_ = 1;
};

/// An error as the daemon's answers are turned into it.
[[nodiscard]] docker::engine_error daemon_says(int status, std::string words);

} // namespace sandboxd::test
