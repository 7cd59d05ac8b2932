#include "app/signals.hpp"

#include <boost/asio/use_awaitable.hpp>

#include <csignal>

namespace sandboxd::app {

namespace asio = boost::asio;

stop_signals::stop_signals(const asio::any_io_executor& executor) : caught_(executor, SIGTERM, SIGINT) {}

task<int> stop_signals::next() {
    co_return co_await caught_.async_wait(asio::use_awaitable);
}

const char* name_of_signal(int number) noexcept {
    return number == SIGTERM ? "SIGTERM" : "SIGINT";
}

void ignore_broken_pipes() {
    std::signal(SIGPIPE, SIG_IGN);
}

} // namespace sandboxd::app
