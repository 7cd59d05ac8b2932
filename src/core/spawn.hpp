#pragma once

#include "core/gate.hpp"
#include "sandboxd/sandbox.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>

#include <memory>
#include <string>

namespace sandboxd::core {

/// Starts a coroutine that nobody awaits. The gate counts it until it ends; an exception that escapes is
/// logged with `name` and counted as a fault, operation_aborted excepted. Nothing is started when the gate is
/// closed: false then.
bool spawn(const boost::asio::any_io_executor& executor, std::string name, gate& inside, task<void> body);

/// The same with a way to cancel it: emit (terminal) on `executor` only, and not before the coroutine's first
/// step: it would end without one, and with it what it does at its end. The signal is kept until the
/// coroutine has ended, as Asio needs it.
bool spawn(const boost::asio::any_io_executor& executor, std::string name, gate& inside, task<void> body,
           std::shared_ptr<boost::asio::cancellation_signal> cancel);

/// Exceptions that escaped from spawned coroutines since the program began; 0 in a healthy program.
[[nodiscard]] unsigned long escaped_exceptions() noexcept;

} // namespace sandboxd::core
