#pragma once

#include "sandboxd/sandbox.hpp"

#include <boost/asio/thread_pool.hpp>

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>

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

    /// Waits for what is queued, then ends the threads. Idempotent.
    void join();

private:
    [[nodiscard]] task<void> run_erased(std::function<void()> work);

    std::string name_;
    boost::asio::thread_pool pool_;
};

} // namespace sandboxd::core
