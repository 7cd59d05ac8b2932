#pragma once

#include "sandboxd/sandbox.hpp"

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <optional>

namespace sandboxd::test {

/// Runs a coroutine to its end on this thread and requires that it ended within `limit` (a hang is a failure,
/// not a stuck suite); what it throws comes out here.
void run(boost::asio::io_context& context, task<void> body,
         std::chrono::seconds limit = std::chrono::seconds(30));

template <class T>
task<void> keep(task<T> body, std::optional<T>& answer) {
    answer.emplace(co_await std::move(body));
}

/// The same for a coroutine with a value.
template <class T>
T get(boost::asio::io_context& context, task<T> body, std::chrono::seconds limit = std::chrono::seconds(30)) {
    std::optional<T> answer;
    run(context, keep(std::move(body), answer), limit);
    return std::move(*answer);
}

} // namespace sandboxd::test
