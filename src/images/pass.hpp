#pragma once

#include "images/jobs.hpp"

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sandboxd::images {

/// Makes the images of the allowlist ready, one after the other (contract 4.7, N10). Any executor.
class pass final : public std::enable_shared_from_this<pass> {
public:
    pass(std::shared_ptr<const keeper_options> with, std::shared_ptr<jobs> by)
        : with_(std::move(with)), jobs_(std::move(by)) {}

    /// keeper::warm()
    [[nodiscard]] task<std::vector<std::string>> run(std::uint32_t attempts);

    /// keeper::begin_warming()
    void begin();

    /// What waits for its turn or its next attempt, by alias.
    [[nodiscard]] std::map<std::string, warming> snapshot() const;

    /// Ends the one in the background.
    void close();

private:
    using self_pointer = std::shared_ptr<pass>;

    [[nodiscard]] task<std::vector<std::string>> all(self_pointer self, std::uint32_t attempts);
    [[nodiscard]] task<bool> one(self_pointer self, wanted_image image, std::uint32_t attempts);
    [[nodiscard]] task<void> background(self_pointer self, std::shared_ptr<job_stop> stop);
    void note(const wanted_image& image, warming::state doing, std::uint32_t attempt);
    void forget(const std::string& alias);

    std::shared_ptr<const keeper_options> with_;
    std::shared_ptr<jobs> jobs_;
    mutable std::mutex mutex_;
    std::map<std::string, std::pair<warming, std::chrono::steady_clock::time_point>> queue_; ///< by alias
    std::shared_ptr<job_stop> stop_; ///< of the one in the background
    bool closed_ = false;
};

} // namespace sandboxd::images
