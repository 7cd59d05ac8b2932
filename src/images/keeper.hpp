#pragma once

#include "core/clock.hpp"
#include "core/gate.hpp"
#include "images/source.hpp"

#include <boost/asio/any_io_executor.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sandboxd::images {

/// An entry of the allowlist, as far as its image goes.
struct wanted_image {
    std::string alias;
    std::string reference;     ///< the recipe's tag where there is one
    std::optional<recipe> how; ///< for an image that is built
};

/// What is being done about one runtime's image.
struct warming {
    enum class state : unsigned char {
        queued,   ///< its turn has not come
        looking,  ///< whether it is here
        pulling,  //
        building, //
        waiting   ///< the last attempt failed, the next one comes
    };
    std::string alias; ///< the reference where no alias of the allowlist stands for it
    std::string reference;
    state doing = state::queued;
    std::uint32_t step = 0; ///< the one of a build that is under way, from 1; 0 when there is none
    std::uint32_t done = 0; ///< steps or layers, of `of`; 0 of 0 while it is not known
    std::uint32_t of = 0;
    std::uint32_t attempt = 1;
    std::chrono::seconds since{0}; ///< in this state
};

/// "queued", "looking", "pulling", "building", "waiting"
[[nodiscard]] const char* name_of(warming::state doing) noexcept;

struct keeper_options {
    boost::asio::any_io_executor executor;
    core::gate* background = nullptr; ///< counts the work: close() the keeper, then await drained()
    std::shared_ptr<image_source> source;
    std::vector<wanted_image> allowed; ///< the allowlist
    std::shared_ptr<core::clock> clock = core::system_clock();
    /// Waits between two attempts; false when cancelled. core::sleep_for unless a test has another.
    std::function<task<bool>(std::chrono::steady_clock::duration)> pause;
    std::chrono::milliseconds pull_limit = std::chrono::minutes(15);
    std::chrono::milliseconds build_limit = std::chrono::minutes(30);
    std::chrono::milliseconds between_attempts = std::chrono::seconds(10); ///< contract N10
    std::chrono::milliseconds between_lines = std::chrono::seconds(5);     ///< of progress in the log
    std::chrono::milliseconds quiet =
        std::chrono::seconds(30);                     ///< without a line, then there is a sign of life
    std::function<void(const std::string& line)> say; ///< core::log::info unless a test has another
};

/// Makes images ready: each once, for all who wait. What failed is forgotten at once: who asks next starts
/// anew. Any executor.
class keeper {
public:
    virtual ~keeper() = default;
    keeper() = default;
    keeper(const keeper&) = delete;
    keeper& operator=(const keeper&) = delete;

    /// Tells how an image is built that is not, or not any more, in the allowlist: a session keeps the entry
    /// it was opened with.
    virtual void learn(recipe how) = 0;

    /// Whether ready() builds this image although there is one of its tag (`cache_image` false, contract
    /// 4.4.3). For callers that look for the image themselves first.
    [[nodiscard]] virtual bool always_builds(const std::string& reference) const = 0;

    /// One attempt: returns when the image is here, built where a recipe of this tag is known, pulled
    /// otherwise; what a build makes superfluous is removed later. Joins what is under way for it. Cancelling
    /// the awaiting coroutine ends the waiting only. errc::start_failed or unavailable in the source's words,
    /// timeout after the limit.
    [[nodiscard]] virtual task<result<void>> ready(std::string reference) = 0;

    /// The whole allowlist, one after the other in the order of aliases, each tried up to `attempts` times
    /// (contract 4.7, N10). The aliases that never became ready.
    [[nodiscard]] virtual task<std::vector<std::string>> warm(std::uint32_t attempts) = 0;

    /// warm(2) in the background; once.
    virtual void begin_warming() = 0;

    /// What goes on, in the order of aliases; empty when nothing does. Never blocks.
    [[nodiscard]] virtual std::vector<warming> snapshot() const = 0;

    /// Cancels what is under way; who waits is told errc::unavailable. Nothing is started any more.
    virtual void close() = 0;
};

[[nodiscard]] std::shared_ptr<keeper> create_keeper(keeper_options options);

} // namespace sandboxd::images
