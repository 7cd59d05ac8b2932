#pragma once

#include "images/source.hpp"

#include <deque>
#include <mutex>
#include <string>

namespace sandboxd::sandboxes::docker_backend {

/// What a builder has said: how far it is, and its last lines for when it fails. Thread-safe.
class build_output {
public:
    explicit build_output(images::progress_sink tell) : tell_(std::move(tell)) {}

    /// A line of the classic builder ("Step 2/5 : RUN ...") or of BuildKit ("#5 [2/4] RUN ...", "#5 0.3
    /// ...").
    void add(const std::string& line);

    /// At most 25 lines and 3 000 bytes, of the step that failed last if that can be told.
    [[nodiscard]] std::string last_lines() const;

private:
    images::progress_sink tell_;
    mutable std::mutex mutex_;
    images::progress latest_;
    std::deque<std::string> lines_;
    bool of_kit_ = false;  ///< BuildKit speaks, whose steps' own words come behind "#5 0.3 "
    bool repeats_ = false; ///< it says the failed step's output once more, between two lines "------"
};

} // namespace sandboxd::sandboxes::docker_backend
