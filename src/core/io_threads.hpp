#pragma once

#include <boost/asio/io_context.hpp>

#include <chrono>

namespace sandboxd::core {

/// When another thread is worth its wake-ups. The defaults are the service's; tests make them small.
struct io_thread_rules {
    /// Between two looks at what the threads do; twice as long each time while they do next to nothing.
    std::chrono::milliseconds look{20};
    std::chrono::milliseconds longest_look{160};
    /// A thread that has joined leaves after that, to look again; twice as long each time while it is needed.
    std::chrono::milliseconds stay{100};
    std::chrono::milliseconds longest_stay{1000};
    /// The share of its time that every thread inside runs or waits for a processor: the next one joins.
    double busy = 0.6;
};

/// Runs the context until it has no more work or is stopped, on at most `most` threads, this one among them.
///
/// One thread runs it while that keeps up; another joins when those that are in are busy, and stays away when
/// they no longer are. For several threads in one context pass the events from one to the next and wake each
/// other for it, which costs a small command a tenth of its time and a host with two cores part of its rate.
///
/// A handler that throws ends the program (a bug: see spawn.hpp).
void run_context(boost::asio::io_context& context, unsigned most, const io_thread_rules& rules = {}) noexcept;

} // namespace sandboxd::core
