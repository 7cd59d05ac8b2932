#pragma once

#include "images/recipe.hpp"
#include "sandboxd/sandbox.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace sandboxd::images {

/// How far a pull or build has come. `text` is for the log and may quote the recipe; the numbers may be shown
/// to anybody.
struct progress {
    std::string text;       ///< "3 of 7 layers, 12 MB", "RUN pip install numpy"; "" when there is nothing new
    std::uint32_t done = 0; ///< layers that are here; of a build the step that is under way, from 1
    std::uint32_t of = 0;   ///< 0 while it is not known
    bool begins = false;    ///< a step begins, `text` is its instruction
};

/// May be called from any thread, as often as there is news; cheap. Calls after the work has ended are
/// ignored.
using progress_sink = std::function<void(progress)>;

/// Where a backend's images are and come from. The keeper asks; it never asks for two things about one image
/// at a time. Every call ends: by itself, or soon after the awaiting coroutine was cancelled (a terminal
/// cancellation: a deadline, the shutdown), and leaves nothing half made behind then. What goes wrong is
/// errc::start_failed, or errc::unavailable where the daemon is away, in words fit for a 502: the thing's
/// name, and the last lines of what the failed step has said.
class image_source {
public:
    virtual ~image_source() = default;
    image_source() = default;
    image_source(const image_source&) = delete;
    image_source& operator=(const image_source&) = delete;

    /// Whether the image is here: a registry reference, a recipe's tag, or whatever else this backend takes
    /// for an image. What needs no fetching ("host", a directory) is always here.
    [[nodiscard]] virtual task<result<bool>> present(std::string reference) = 0;

    /// Fetches an image that is not here.
    [[nodiscard]] virtual task<result<void>> pull(std::string reference, progress_sink tell) = 0;

    /// Builds the image and gives it the recipe's tag, whether or not there is one of that tag (its base
    /// image is fetched where it is not here). What it tells is counted by build_steps.
    [[nodiscard]] virtual task<result<void>> build(recipe what, progress_sink tell) = 0;

    /// After a build: removes the other images of that runtime (is_image_of()) that nobody names or uses any
    /// more (contract 4.4.8). `kept` are the references that the allowlist names, the new one among them.
    /// What can't be removed stays, silently.
    [[nodiscard]] virtual task<void> prune(std::string runtime, std::vector<std::string> kept) = 0;

    /// After a pass over the whole allowlist: removes what this source has fetched before and `kept` does not
    /// name any more, where that is its own business to decide.
    [[nodiscard]] virtual task<void> sweep(std::vector<std::string> kept);
};

inline task<void> image_source::sweep(std::vector<std::string>) {
    co_return;
}

} // namespace sandboxd::images
