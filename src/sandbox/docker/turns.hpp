#pragma once

#include "core/event.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace sandboxd::sandboxes::docker_backend {

/// One at a time for each key: pulls of one image, fillings of one volume. Who had to wait looks again
/// whether there is anything left to do. Any executor; lives in a shared_ptr.
class turns : public std::enable_shared_from_this<turns> {
public:
    /// Its destruction lets the next one go on.
    class turn {
    public:
        turn(std::shared_ptr<turns> of, std::string key) : of_(std::move(of)), key_(std::move(key)) {}
        turn(turn&&) noexcept = default;
        turn& operator=(turn&&) = delete;
        ~turn() {
            if (of_) {
                of_->release(key_);
            }
        }

    private:
        std::shared_ptr<turns> of_;
        std::string key_;
    };

    [[nodiscard]] task<turn> take(std::string key);

private:
    void release(const std::string& key);

    std::mutex mutex_;
    std::map<std::string, std::shared_ptr<core::shared_event>> taken_;
};

} // namespace sandboxd::sandboxes::docker_backend
