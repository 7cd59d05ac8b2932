#pragma once

#include "client/http_client.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

#include <thread>

namespace sandboxd::client {

/// A thread that runs a context until it is destroyed, which must not happen on it.
class background {
public:
    background();
    ~background();
    background(const background&) = delete;
    background& operator=(const background&) = delete;

    [[nodiscard]] boost::asio::any_io_executor executor() { return context_.get_executor(); }

private:
    boost::asio::io_context context_{1};
    boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
    std::thread thread_;
};

struct connections::inside {
    std::unique_ptr<background> thread; ///< of blocking clients; declared first: ends last
    std::shared_ptr<http_client> http;
};

/// The same over a dialer of one's own, for tests.
[[nodiscard]] std::unique_ptr<connections::inside> parts_of(const boost::asio::any_io_executor& executor,
                                                            std::unique_ptr<dialer> dialer, service_url where,
                                                            const connection_options& options);

} // namespace sandboxd::client
