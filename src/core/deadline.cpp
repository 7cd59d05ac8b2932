#include "core/deadline.hpp"

namespace sandboxd::core {

task<bool> sleep_for(std::chrono::steady_clock::duration time) {
    boost::asio::steady_timer timer(co_await boost::asio::this_coro::executor, time);
    const auto [failed] = co_await timer.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
    co_return !failed;
}

} // namespace sandboxd::core
