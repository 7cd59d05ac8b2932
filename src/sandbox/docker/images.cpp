#include "sandbox/docker/images.hpp"

#include "core/log.hpp"

#include <map>
#include <mutex>

namespace sandboxd::sandboxes::docker_backend {

namespace {

using namespace std::chrono_literals;

constexpr auto inspect_limit = 10s;
constexpr auto between_lines = 5s;

/// Pull progress as a line in the log every few seconds.
class progress_log {
public:
    explicit progress_log(std::string reference) : reference_(std::move(reference)) {}

    void add(const docker::pull_progress& step) {
        const std::lock_guard lock(mutex_);
        if (!step.layer.empty() && layers_.size() < most_layers) {
            auto& layer = layers_[step.layer];
            if (step.status == "Downloading" && step.current) {
                layer.bytes = *step.current;
            } else if (step.status == "Pull complete" || step.status == "Already exists") {
                layer.done = true;
            }
        }
        const auto now = std::chrono::steady_clock::now();
        if (now - last_ < between_lines) {
            return;
        }
        last_ = now;
        std::size_t done = 0;
        std::uint64_t bytes = 0;
        for (const auto& [name, layer] : layers_) {
            done += layer.done ? 1 : 0;
            bytes += layer.bytes;
        }
        core::log::info("pulling {}: {} of {} layers, {} MB", reference_, done, layers_.size(),
                        bytes / 1'000'000);
    }

private:
    struct layer {
        std::uint64_t bytes = 0;
        bool done = false;
    };
    static constexpr std::size_t most_layers = 1000;

    std::string reference_;
    std::mutex mutex_;
    std::map<std::string, layer> layers_;
    std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

bool is_missing(const docker::engine_error& why) {
    return why.status == 404;
}

} // namespace

task<result<docker::image_details>> find_image(std::shared_ptr<docker::engine> engine,
                                               std::shared_ptr<turns> one_by_one, std::string reference,
                                               std::chrono::milliseconds pull_limit) {
    auto found = co_await engine->inspect_image(reference, inspect_limit);
    if (!found && is_missing(found.error())) {
        const auto mine = co_await one_by_one->take("pull " + reference);
        found = co_await engine->inspect_image(reference, inspect_limit); // somebody may have pulled it
        if (!found && is_missing(found.error())) {
            core::log::info("image {} is not on the docker host: pulling it", reference);
            const auto progress = std::make_shared<progress_log>(reference);
            auto pulled = co_await engine->pull(
                reference, "", [progress](const docker::pull_progress& step) { progress->add(step); },
                pull_limit);
            if (!pulled) {
                co_return error{errc::start_failed, pulled.error().message};
            }
            core::log::info("image {} is pulled", reference);
            found = co_await engine->inspect_image(reference, inspect_limit);
        }
    }
    if (!found) {
        co_return error{errc::start_failed, found.error().message};
    }
    if (!found->os.empty() && found->os != "linux") {
        co_return error{errc::start_failed,
                        "image " + reference + " is for " + found->os + ": sandboxes are Linux only"};
    }
    co_return std::move(*found);
}

} // namespace sandboxd::sandboxes::docker_backend
