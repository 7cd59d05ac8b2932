#pragma once

#include "sandboxd/sandbox.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/signal_set.hpp>

#include <string>

namespace sandboxd::app {

/// Catches SIGTERM and SIGINT for as long as it lives; one that came before next() is not lost. Its end
/// restores the default actions: a second signal while the stop lasts ends the program at once, so that an
/// impatient operator is never stuck.
class stop_signals {
public:
    explicit stop_signals(const boost::asio::any_io_executor& executor);

    /// The number of the next one.
    [[nodiscard]] task<int> next();

private:
    boost::asio::signal_set caught_;
};

/// "SIGTERM" or "SIGINT"
[[nodiscard]] const char* name_of_signal(int number) noexcept;

/// A write to a client that has left must be an error, not the end of the program.
void ignore_broken_pipes();

} // namespace sandboxd::app
