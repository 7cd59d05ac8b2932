#pragma once

#include "docker/engine.hpp"
#include "images/source.hpp"

#include <map>
#include <mutex>
#include <string>

namespace sandboxd::sandboxes::docker_backend {

/// Adds up what a pull tells of its layers. Thread-safe.
class pull_count {
public:
    explicit pull_count(images::progress_sink tell) : tell_(std::move(tell)) {}

    void add(const docker::pull_progress& step) {
        images::progress news;
        {
            const std::lock_guard lock(mutex_);
            if (step.layer.empty() || layers_.size() >= most_layers) {
                return;
            }
            if (step.status.starts_with("Pulling from")) {
                return; // that is the tag's name, not a layer's
            }
            auto& layer = layers_[step.layer];
            if (step.status == "Downloading" && step.current) {
                layer.bytes = *step.current;
            } else if (step.status == "Pull complete" || step.status == "Already exists") {
                layer.done = true;
            }
            std::uint64_t bytes = 0;
            for (const auto& [name, one] : layers_) {
                news.done += one.done ? 1 : 0;
                bytes += one.bytes;
            }
            news.of = static_cast<std::uint32_t>(layers_.size());
            news.text = std::to_string(news.done) + " of " + std::to_string(news.of) + " layers, " +
                        std::to_string(bytes / 1'000'000) + " MB";
        }
        if (tell_) {
            tell_(std::move(news));
        }
    }

private:
    struct layer {
        std::uint64_t bytes = 0;
        bool done = false;
    };
    static constexpr std::size_t most_layers = 1000;

    images::progress_sink tell_;
    std::mutex mutex_;
    std::map<std::string, layer> layers_;
};

} // namespace sandboxd::sandboxes::docker_backend
