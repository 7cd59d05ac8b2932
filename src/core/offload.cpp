#include "core/offload.hpp"

#include <boost/asio/async_result.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <exception>

namespace sandboxd::core {

namespace asio = boost::asio;

worker_pool::worker_pool(std::string name, std::size_t threads)
    : name_(std::move(name)), threads_(threads), pool_(threads) {}

worker_pool::~worker_pool() {
    join();
}

void worker_pool::join() {
    pool_.join();
}

task<void> worker_pool::run_erased(std::function<void()> work) {
    std::exception_ptr failure;
    auto home = co_await asio::this_coro::executor;
    auto start = [this, &work, &failure, home](auto handler) {
        // The handler's frame is alive until it is called: the coroutine waits for it below.
        auto job = [&work, &failure, home, handler = std::move(handler)]() mutable {
            try {
                work();
            } catch (...) {
                failure = std::current_exception();
            }
            asio::post(home, std::move(handler));
        };
        asio::post(pool_, std::move(job));
    };
    co_await asio::async_initiate<decltype(asio::use_awaitable), void()>(std::move(start),
                                                                         asio::use_awaitable);
    if (failure) {
        std::rethrow_exception(failure);
    }
}

} // namespace sandboxd::core
