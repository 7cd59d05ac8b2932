#pragma once

#include "sandboxd/sandbox.hpp"

#include <boost/asio/thread_pool.hpp>

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace sandboxd::core {

/// A named pool of threads for calls that block (design.md: I/O threads never do). Members are destroyed last
/// in, first out: declare it before what posts to it.
class worker_pool {
public:
    worker_pool(std::string name, std::size_t threads);
    ~worker_pool();

    /// Runs `work` on a thread of the pool; the awaiting coroutine goes on where it was. An exception that
    /// `work` throws comes out of the await. Queued work is not dropped by a cancellation of the awaiting
    /// coroutine.
    template <class F>
    [[nodiscard]] task<std::invoke_result_t<F>> run(F work) {
        using value = std::invoke_result_t<F>;
        if constexpr (std::is_void_v<value>) {
            co_await run_erased([&work] { work(); });
        } else {
            std::optional<value> answer;
            co_await run_erased([&work, &answer] { answer.emplace(work()); });
            co_return std::move(*answer);
        }
    }

    /// Work over so many `bytes` that never waits (parsing, printing, encoding): a thread of the pool does it
    /// only when there are more than most_at_once, which would hold up others for longer than the way there.
    template <class F>
    [[nodiscard]] task<std::invoke_result_t<F>> run_sized(std::size_t bytes, F work) {
        if (bytes <= most_at_once) {
            co_return work();
        }
        co_return co_await run(std::move(work));
    }
    static constexpr std::size_t most_at_once = 256 * 1024;

    /// Waits for what is queued, then ends the threads. Idempotent.
    void join();

    [[nodiscard]] std::size_t threads() const noexcept { return threads_; }

private:
    [[nodiscard]] task<void> run_erased(std::function<void()> work);

    std::string name_;
    std::size_t threads_;
    boost::asio::thread_pool pool_;
};

} // namespace sandboxd::core
