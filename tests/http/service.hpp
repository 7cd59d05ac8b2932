#pragma once

#include "http/server.hpp"

#include <boost/asio/io_context.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace sandboxd::test {

/// A server on a loopback port, its context run by two threads. The end checks that everything ran dry.
class service {
public:
    struct options {
        http::limits bounds{};
        std::uint64_t budget = 512U << 20U;
        std::shared_ptr<tls::server_context> tls{};
        std::chrono::milliseconds grace{5000};
    };

    service();
    explicit service(options chosen);
    service(options chosen, http::handler handler);
    ~service();

    /// Waits for the end; once.
    void stop(std::chrono::milliseconds grace);
    /// Begins to stop and does not wait.
    void begin_stop(std::chrono::milliseconds grace);

    [[nodiscard]] std::uint16_t port() const { return port_; }
    [[nodiscard]] std::size_t connections() const { return server_->connections(); }
    [[nodiscard]] std::uint64_t budget_used() const { return budget_.used(); }
    boost::asio::io_context& context() { return context_; }

    // What the handlers below saw.
    std::atomic<int> waiting{0};       ///< in /wait and the like
    std::atomic<int> cancelled{0};     ///< /wait ended by cancellation
    std::atomic<int> found_gone{0};    ///< /until_gone noticed
    std::atomic<int> probed_gone{0};   ///< /probe noticed by 102
    std::atomic<bool> released{false}; ///< /hold may answer

private:
    void start(options chosen, http::handler handler);
    task<void> handle(http::exchange& x);
    task<void> stop_and_tell(std::chrono::milliseconds grace);

    boost::asio::io_context context_{2};
    http::memory_budget budget_;
    std::unique_ptr<http::server> server_;
    std::vector<std::thread> threads_;
    std::chrono::milliseconds grace_;
    std::uint16_t port_ = 0;
    std::atomic<int> running_{0};
    bool stopped_ = false;
};

/// Waits until a condition holds, at most a minute.
template <class F>
bool eventually(F condition) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!condition()) {
        if (std::chrono::steady_clock::now() > until) {
            return false;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return true;
}

} // namespace sandboxd::test
