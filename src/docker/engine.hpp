#pragma once

#include "docker/client.hpp"
#include "docker/container_spec.hpp"
#include "docker/endpoint.hpp"
#include "docker/events.hpp"
#include "docker/inspect.hpp"
#include "docker/query.hpp"
#include "docker/registry_auth.hpp"
#include "docker/stats.hpp"

namespace sandboxd::docker {

using std::chrono::milliseconds;

/// What a call that may be repeated found.
enum class outcome : unsigned char {
    done,
    already,    ///< 304: it was so before
    missing,    ///< 404: there is no such thing (success for a removal)
    in_progress ///< 409 "already in progress": a removal is under way
};

struct version_info {
    std::string engine; ///< "20.10.24"
    std::string api;
    std::string oldest_api;
    std::string os;
    std::string architecture;
    std::string kernel;
};

struct engine_info {
    std::string id;
    std::string name;
    std::string server_version;
    std::string os_type;
    std::string architecture;
    std::string storage_driver;
    std::string cgroup_version; ///< "1" or "2"
    std::string cgroup_driver;
    std::string default_runtime;
    std::vector<std::string> runtimes;
    std::vector<std::string> security_options;
    std::vector<std::string> warnings;
    std::optional<std::uint64_t> cpus;
    std::optional<std::uint64_t> memory_bytes;
    bool live_restore = false;
    bool rootless = false;
};

struct created_container {
    std::string id;
    std::vector<std::string> warnings;
};

struct container_summary {
    std::string id;
    std::string name;
    std::string image;
    std::string state;
    text_pairs labels;
};

struct wait_result {
    std::int64_t exit_code = 0;
    std::string error; ///< the daemon's words when waiting went wrong; else ""
};

struct exec_spec {
    std::vector<std::string> argv; ///< no shell in between; one string at most 128 KiB
    text_pairs environment;
    std::string working_dir;
    std::string user;
    bool attach_stdin = false;
    bool tty = false;
};

struct exec_state {
    bool running = false;
    std::optional<std::int64_t> exit_code; ///< absent while it runs, and for a moment after
};

struct attach_options {
    bool send_stdin = true;
    bool logs = false;
    hijack_options stream;
};

struct image_details {
    std::string id;
    std::string os;
    std::string architecture;
    std::string user;
    std::string working_dir;
    std::vector<std::string> entrypoint;
    std::vector<std::string> command;
    std::vector<std::string> environment;
    std::vector<std::string> tags;
    std::vector<std::string> digests;
    std::optional<std::uint64_t> size;
    text_pairs labels;
};

struct image_summary {
    std::string id;
    std::vector<std::string> tags;
    std::optional<std::uint64_t> size;
};

struct pull_progress {
    std::string layer; ///< "" for the whole
    std::string status;
    std::optional<std::uint64_t> current; ///< bytes
    std::optional<std::uint64_t> total;
};

struct build_request {
    std::string tag;
    std::string dockerfile; ///< all there is in the context
    text_pairs arguments;   ///< build arguments: names and values
};

struct volume_details {
    std::string name;
    std::string driver;
    std::string mountpoint;
    text_pairs labels;
};

/// What watch_events() tells; all on an executor of the engine's, never two at once.
struct event_sink {
    /// The stream is open: list now, for what happened before. `again` after it was lost.
    std::function<void(bool again)> connected;
    std::function<void(const engine_event&)> event;
    std::function<void(const engine_error&)> lost;
};

/// The Docker Engine, as coroutines (design.md, seam 4). Safe to call from any executor and several at a
/// time.
///
/// Every call ends within its `limit` (errc::timeout then; for calls that change something
/// engine_error::may_have_happened tells whether the daemon had been asked). Other errors: errc::unavailable
/// (the daemon can't be reached), protocol (its answer is not understood), unsupported (no common API
/// version), and by status invalid, denied, not_found, exists, busy, io. Cancelling the awaiting coroutine
/// ends the call and drops its connection.
class engine {
public:
    virtual ~engine() = default;
    engine() = default;
    engine(const engine&) = delete;
    engine& operator=(const engine&) = delete;

    /// Agrees on a version with the daemon; proves that it answers.
    [[nodiscard]] virtual task<answer<api_version>> ping(milliseconds limit) = 0;
    [[nodiscard]] virtual task<answer<version_info>> version(milliseconds limit) = 0;
    [[nodiscard]] virtual task<answer<engine_info>> info(milliseconds limit) = 0;

    /// When it fails with may_have_happened the container may come into being later: remove_matching() its
    /// slot's label then, now and once more later.
    [[nodiscard]] virtual task<answer<created_container>> create(container_spec spec, milliseconds limit) = 0;
    [[nodiscard]] virtual task<answer<outcome>> start(std::string id, milliseconds limit) = 0;
    /// TERM, then KILL after `grace`; `limit` counts on top of the grace.
    [[nodiscard]] virtual task<answer<outcome>> stop(std::string id, std::chrono::seconds grace,
                                                     milliseconds limit) = 0;
    /// outcome::already where it does not run.
    [[nodiscard]] virtual task<answer<outcome>> kill(std::string id, std::string signal,
                                                     milliseconds limit) = 0;
    /// Lets a paused container go on. An error where it is not paused.
    [[nodiscard]] virtual task<answer<outcome>> unpause(std::string id, milliseconds limit) = 0;
    /// errc::exists when the name is taken.
    [[nodiscard]] virtual task<answer<void>> rename(std::string id, std::string name, milliseconds limit) = 0;
    [[nodiscard]] virtual task<answer<outcome>> remove(std::string id, bool force, milliseconds limit) = 0;
    [[nodiscard]] virtual task<answer<container_details>> inspect(std::string id, milliseconds limit) = 0;
    /// Running or not. Filters such as {"label", "sandboxd.slot=x"}; a name must be anchored: {"name",
    /// "^/x$"}.
    [[nodiscard]] virtual task<answer<std::vector<container_summary>>> list(filter_list filters,
                                                                            milliseconds limit) = 0;
    /// `condition`: not-running, next-exit, removed.
    [[nodiscard]] virtual task<answer<wait_result>> wait(std::string id, std::string condition,
                                                         milliseconds limit) = 0;
    /// One sample, at once.
    [[nodiscard]] virtual task<answer<stats_sample>> stats(std::string id, milliseconds limit) = 0;
    /// A tar archive is unpacked at `path`, a folder of the container, which need not run.
    [[nodiscard]] virtual task<answer<void>> put_archive(std::string id, std::string path, std::string tar,
                                                         milliseconds limit) = 0;

    /// Never repeated by us.
    [[nodiscard]] virtual task<answer<std::string>> create_exec(std::string container, exec_spec spec,
                                                                milliseconds limit) = 0;
    /// Starts it, once; its streams run on `executor`. A start that fails late is told in the stream: always
    /// look at inspect_exec() after the end.
    [[nodiscard]] virtual task<answer<hijacked>> start_exec(boost::asio::any_io_executor executor,
                                                            std::string exec, hijack_options options,
                                                            milliseconds limit) = 0;
    [[nodiscard]] virtual task<answer<exec_state>> inspect_exec(std::string exec, milliseconds limit) = 0;
    /// The streams of the container's first process, running on `executor`.
    [[nodiscard]] virtual task<answer<hijacked>> attach(boost::asio::any_io_executor executor, std::string id,
                                                        attach_options options, milliseconds limit) = 0;

    [[nodiscard]] virtual task<answer<image_details>> inspect_image(std::string reference,
                                                                    milliseconds limit) = 0;
    /// With the credentials that the `docker` command would use. `progress` may be empty; it is called on an
    /// executor of the engine's. errc::unavailable (retryable) for a rate limit, denied, not_found.
    [[nodiscard]] virtual task<answer<void>> pull(std::string reference, std::string platform,
                                                  std::function<void(const pull_progress&)> progress,
                                                  milliseconds limit) = 0;
    /// The classic builder; containers in between are removed, also after a failure. `line` gets what the
    /// daemon and the steps say, line by line, on an executor of the engine's. The base image is pulled by
    /// the daemon where it is absent, without credentials: pull() it before. Errors in the daemon's words.
    [[nodiscard]] virtual task<answer<void>>
    build(build_request what, std::function<void(const std::string&)> line, milliseconds limit) = 0;
    /// errc::busy when in use and not `force`.
    [[nodiscard]] virtual task<answer<outcome>> remove_image(std::string reference, bool force,
                                                             milliseconds limit) = 0;
    [[nodiscard]] virtual task<answer<std::vector<image_summary>>> list_images(filter_list filters,
                                                                               milliseconds limit) = 0;

    /// Also when it exists already.
    [[nodiscard]] virtual task<answer<volume_details>> create_volume(std::string name, text_pairs labels,
                                                                     milliseconds limit) = 0;
    [[nodiscard]] virtual task<answer<volume_details>> inspect_volume(std::string name,
                                                                      milliseconds limit) = 0;
    [[nodiscard]] virtual task<answer<outcome>> remove_volume(std::string name, milliseconds limit) = 0;

    /// Follows the daemon's events until the awaiting coroutine is cancelled; a lost stream is opened again
    /// (back-off 0.1 to 5 s) where it ended, nothing is told twice.
    [[nodiscard]] virtual task<void> watch_events(filter_list filters, event_sink sink) = 0;
};

struct engine_options {
    client_options client;
    std::string config_folder; ///< of the `docker` command, for registry credentials; "" for none
    file_reader files = disk_files();
};

/// Does not connect. errc::invalid when the endpoint's TLS material is unusable.
[[nodiscard]] result<std::shared_ptr<engine>> create_engine(const boost::asio::any_io_executor& executor,
                                                            const endpoint& where, engine_options options);

/// Removes, by force, every container that the filters find; how many were found. For what a failed create or
/// a crash may have left.
[[nodiscard]] task<answer<std::size_t>> remove_matching(std::shared_ptr<engine> from, filter_list filters,
                                                        milliseconds limit);

} // namespace sandboxd::docker
