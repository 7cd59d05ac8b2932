#pragma once

#include "client/connection.hpp"
#include "client/dialer.hpp"

#include <deque>

namespace sandboxd::client {

/// HTTP to one service over kept connections. All members run on its strand; held by shared_ptr.
class http_client : public std::enable_shared_from_this<http_client> {
public:
    http_client(boost::asio::any_io_executor strand, std::unique_ptr<dialer> dialer, service_url where,
                std::size_t max_answer, std::chrono::milliseconds connect_timeout);

    [[nodiscard]] const boost::asio::any_io_executor& strand() const noexcept { return strand_; }
    [[nodiscard]] const service_url& where() const noexcept { return where_; }
    /// Bytes of one answer's body.
    [[nodiscard]] std::size_t max_answer() const noexcept { return max_answer_; }

    /// One exchange; any status is an answer. fault::unreachable and malformed name the service. Cancellation
    /// ends it with operation_aborted and drops the connection.
    [[nodiscard]] task<outcome<http_answer>> call(http_request what);

    /// Closes what is idle.
    void forget() noexcept { idle_.clear(); }
    [[nodiscard]] std::size_t idle() const noexcept { return idle_.size(); }

private:
    struct resting {
        std::unique_ptr<connection> one;
        std::chrono::steady_clock::time_point since;
    };

    [[nodiscard]] std::unique_ptr<connection> take();
    void keep(std::unique_ptr<connection> one);
    [[nodiscard]] task<outcome<std::unique_ptr<connection>>> dial();
    [[nodiscard]] task<outcome<http_answer>> call_now(http_request what);
    [[nodiscard]] failure unreachable(const std::string& why) const;

    boost::asio::any_io_executor strand_;
    std::unique_ptr<dialer> dialer_;
    service_url where_;
    std::size_t max_answer_;
    std::chrono::milliseconds connect_timeout_;
    std::deque<resting> idle_;
};

/// The detail of an error answer, or its whole body where it is no such JSON; shortened when long.
[[nodiscard]] std::string detail_of(const http_answer& answer);

} // namespace sandboxd::client
