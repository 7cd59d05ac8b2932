#pragma once

// Private to the room: the one implementation of `engine`, spread over a few files by subject.

#include "docker/engine.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <initializer_list>

namespace sandboxd::docker {

class engine_client final : public engine, public std::enable_shared_from_this<engine_client> {
public:
    engine_client(std::shared_ptr<client> http, engine_options options);

    task<answer<api_version>> ping(milliseconds limit) override;
    task<answer<version_info>> version(milliseconds limit) override;
    task<answer<engine_info>> info(milliseconds limit) override;

    task<answer<created_container>> create(container_spec spec, milliseconds limit) override;
    task<answer<outcome>> start(std::string id, milliseconds limit) override;
    task<answer<outcome>> stop(std::string id, std::chrono::seconds grace, milliseconds limit) override;
    task<answer<outcome>> kill(std::string id, std::string signal, milliseconds limit) override;
    task<answer<outcome>> unpause(std::string id, milliseconds limit) override;
    task<answer<void>> rename(std::string id, std::string name, milliseconds limit) override;
    task<answer<outcome>> remove(std::string id, bool force, milliseconds limit) override;
    task<answer<container_details>> inspect(std::string id, milliseconds limit) override;
    task<answer<std::vector<container_summary>>> list(filter_list filters, milliseconds limit) override;
    task<answer<wait_result>> wait(std::string id, std::string condition, milliseconds limit) override;
    task<answer<stats_sample>> stats(std::string id, milliseconds limit) override;
    task<answer<void>> put_archive(std::string id, std::string path, std::string tar,
                                   milliseconds limit) override;

    task<answer<std::string>> create_exec(std::string container, exec_spec spec, milliseconds limit) override;
    task<answer<hijacked>> start_exec(boost::asio::any_io_executor executor, std::string exec,
                                      hijack_options options, milliseconds limit) override;
    task<answer<exec_state>> inspect_exec(std::string exec, milliseconds limit) override;
    task<answer<hijacked>> attach(boost::asio::any_io_executor executor, std::string id,
                                  attach_options options, milliseconds limit) override;

    task<answer<image_details>> inspect_image(std::string reference, milliseconds limit) override;
    task<answer<void>> pull(std::string reference, std::string platform,
                            std::function<void(const pull_progress&)> progress, milliseconds limit) override;
    task<answer<void>> build(build_request what, std::function<void(const std::string&)> line,
                             milliseconds limit) override;
    task<answer<outcome>> remove_image(std::string reference, bool force, milliseconds limit) override;
    task<answer<std::vector<image_summary>>> list_images(filter_list filters, milliseconds limit) override;

    task<answer<volume_details>> create_volume(std::string name, text_pairs labels,
                                               milliseconds limit) override;
    task<answer<volume_details>> inspect_volume(std::string name, milliseconds limit) override;
    task<answer<outcome>> remove_volume(std::string name, milliseconds limit) override;

    task<void> watch_events(filter_list filters, event_sink sink) override;

private:
    /// Runs on the client's strand; the awaiting coroutine goes on where it was.
    template <class T>
    task<T> on_strand(task<T> work) {
        co_return co_await boost::asio::co_spawn(http_->strand(), std::move(work),
                                                 boost::asio::use_awaitable);
    }

    /// One exchange; a status that is not in `good` is an error in the daemon's words.
    task<answer<reply>> call(request what, milliseconds limit, std::vector<int> good);
    /// The same for an answer that must be a JSON object.
    task<answer<json::object>> call_object(request what, milliseconds limit, std::vector<int> good);
    task<answer<json::array>> call_array(request what, milliseconds limit);
    /// 2xx done, 304 already, 404 missing or an error.
    task<answer<outcome>> call_outcome(request what, milliseconds limit, bool missing_is_fine);

    task<answer<wait_result>> wait_now(request what, milliseconds limit);
    /// A call whose answer is a stream of JSON objects, of which one that tells of an error makes it a
    /// failure. `told` gets the others. Credentials for `registry` go along unless it is "".
    task<answer<void>> stream_now(request what, std::string registry,
                                  std::function<void(const json::object&)> told, milliseconds limit);
    task<answer<void>> stream(request what, std::string registry,
                              std::function<void(const json::object&)> told, milliseconds limit);
    task<void> watch_now(filter_list filters, event_sink sink);
    task<answer<void>> watch_once(filter_list filters, event_sink sink, std::shared_ptr<event_cursor> cursor,
                                  std::shared_ptr<bool> opened);

    std::shared_ptr<client> http_;
    engine_options options_;
};

[[nodiscard]] request get(std::string what, std::string target);
[[nodiscard]] request post(std::string what, std::string target, std::string json_body = {});
[[nodiscard]] request erase(std::string what, std::string target);

} // namespace sandboxd::docker
