#pragma once

#include "core/offload.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sandboxd::session {

/// The text of files as `read` shows it (contract 3.3), of sandboxes and of the archive. Large texts and
/// PDFs, which take long, have workers of their own: few at once, and no other work waits behind them. Called
/// from any executor; outlives its calls.
class text_extractor {
public:
    /// The lines of a file: nothing when `until` had passed before they were there, or stop() was called. The
    /// error is that of a file without text. `path` and `bytes` stay with the caller until it answers.
    [[nodiscard]] task<std::optional<result<std::string>>> lines(std::string_view path,
                                                                 std::string_view bytes, std::int64_t offset,
                                                                 std::int64_t limit,
                                                                 std::chrono::steady_clock::time_point until);

    /// What waits for a worker is given up.
    void stop() noexcept { stopped_ = true; }

private:
    std::atomic<bool> stopped_{false};
    core::worker_pool workers_{"text", 2};
};

} // namespace sandboxd::session
