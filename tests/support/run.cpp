#include "support/run.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <exception>

namespace sandboxd::test {

void run(boost::asio::io_context& context, task<void> body, std::chrono::seconds limit) {
    bool finished = false;
    std::exception_ptr failure;
    auto done = [&](const std::exception_ptr& thrown) {
        finished = true;
        failure = thrown;
    };
    boost::asio::co_spawn(context, std::move(body), std::move(done));
    context.restart();
    // The limit is there for what hangs. A busy machine that takes half a minute is no sign of that.
    const auto until =
        std::chrono::steady_clock::now() + std::max<std::chrono::seconds>(limit, std::chrono::minutes(3));
    while (!finished && std::chrono::steady_clock::now() < until) {
        if (context.run_one_until(until) == 0 && context.stopped()) {
            break;
        }
    }
    BOOST_REQUIRE_MESSAGE(finished, "the coroutine did not end within the limit");
    if (failure) {
        std::rethrow_exception(failure);
    }
}

} // namespace sandboxd::test
