#pragma once

#include "core/gate.hpp"
#include "sandboxd/sandbox.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>

#include <string>

namespace sandboxd::core {

/// Starts a coroutine that nobody awaits. The gate counts it until it ends; an exception that escapes is
/// logged with `name` and counted as a fault, operation_aborted excepted. Nothing is started when the gate is
/// closed: false then.
bool spawn(const boost::asio::any_io_executor& executor, std::string name, gate& inside, task<void> body);

/// The same with a way to cancel it. The signal outlives the coroutine and is emitted (terminal) on
/// `executor` only.
bool spawn(const boost::asio::any_io_executor& executor, std::string name, gate& inside, task<void> body,
           boost::asio::cancellation_slot cancel);

/// Exceptions that escaped from spawned coroutines since the program began; 0 in a healthy program.
[[nodiscard]] unsigned long escaped_exceptions() noexcept;

} // namespace sandboxd::core
