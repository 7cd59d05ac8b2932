#pragma once

#include "images/source.hpp"

#include <chrono>
#include <optional>
#include <string>

namespace sandboxd::images {

/// What the log says about one pull or build: every step when it begins, other news once in a while, and a
/// sign of life when there are none. No clock inside.
class progress_lines {
public:
    using time_point = std::chrono::steady_clock::time_point;

    /// `what`: "building image:1". News come as often as once in `between_news`, signs of life after `quiet`.
    progress_lines(std::string what, time_point now, std::chrono::milliseconds between_news,
                   std::chrono::milliseconds quiet);

    /// The line that is due, if any.
    [[nodiscard]] std::optional<std::string> note(const progress& news, time_point now);
    [[nodiscard]] std::optional<std::string> sign_of_life(time_point now);
    /// When the next one is due, if nothing happens.
    [[nodiscard]] time_point quiet_until() const noexcept { return last_line_ + quiet_; }

    [[nodiscard]] const progress& latest() const noexcept { return latest_; }

private:
    std::string what_;
    std::chrono::milliseconds between_news_;
    std::chrono::milliseconds quiet_;
    time_point began_; ///< the step, or all of it
    time_point last_line_;
    progress latest_;
    std::string step_; ///< the instruction of the step under way
};

} // namespace sandboxd::images
