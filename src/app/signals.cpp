#include "app/signals.hpp"

#include <boost/asio/signal_set.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <csignal>

namespace sandboxd::app {

namespace asio = boost::asio;

task<std::string> stop_signal() {
    asio::signal_set signals(co_await asio::this_coro::executor, SIGTERM, SIGINT);
    const int number = co_await signals.async_wait(asio::use_awaitable);
    // The set is destroyed here and restores the default actions: the next one ends the program.
    co_return number == SIGTERM ? "SIGTERM" : "SIGINT";
}

void ignore_broken_pipes() {
    std::signal(SIGPIPE, SIG_IGN);
}

} // namespace sandboxd::app
