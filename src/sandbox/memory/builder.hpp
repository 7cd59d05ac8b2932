#pragma once

// A kind of sandbox that lives in this process, for tests of everything above the seam: no root, no agent.
// Its commands are those of memory/script.hpp, which see none of its files.

#include "sandboxd/sandbox.hpp"

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace sandboxd::sandboxes::memory {

/// What a test can turn. Safe to call from any thread. Sandboxes live as long as the builder: let go of one
/// without stop() and adopt() finds it again, as after a restart of the service.
class memory_builder : public sandbox_builder {
public:
    /// The next build() fails with errc::start_failed and this text.
    virtual void fail_next_build(std::string text) = 0;
    /// The next prepare() fails with errc::start_failed and this text.
    virtual void fail_next_prepare(std::string text) = 0;
    /// Every build takes this long from now on.
    virtual void delay_builds(std::chrono::milliseconds by) = 0;
    /// Every stop takes this long from now on.
    virtual void delay_stops(std::chrono::milliseconds by) = 0;
    /// Every operation on files takes this long from now on.
    virtual void delay_files(std::chrono::milliseconds by) = 0;
    /// The living sandbox of this session dies by itself; false when there is none.
    virtual bool kill(std::string_view session_id) = 0;

    [[nodiscard]] virtual std::size_t builds() const = 0; ///< that succeeded
    [[nodiscard]] virtual std::size_t stops() const = 0;  ///< of living sandboxes
    [[nodiscard]] virtual std::size_t purges() const = 0; ///< stops with purge, dead sandboxes included
    [[nodiscard]] virtual std::size_t living() const = 0;
    [[nodiscard]] virtual std::size_t commands() const = 0; ///< started, over all sandboxes
    /// The most operations on files there were at one moment, since they take time (delay_files).
    [[nodiscard]] virtual std::size_t most_at_files() const = 0;
};

/// Its name is "memory". Images: any but "missing", which prepare() refuses.
[[nodiscard]] std::shared_ptr<memory_builder> create_memory_builder();

} // namespace sandboxd::sandboxes::memory
