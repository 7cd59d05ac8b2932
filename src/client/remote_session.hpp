#pragma once

#include "client/answers.hpp"
#include "client/connections.hpp"
#include "client/strand_call.hpp"
#include "sandboxd/remote_sandbox.hpp"

#include <mutex>

namespace sandboxd::client {

/// What a command may take longer on its way than by itself (contract 8.1, lines 281 and 282).
inline constexpr std::chrono::seconds transport_slack{10};

/// The state of one remote_sandbox: what it knows of its session. All but session_id() and server_timeout()
/// on the strand. It holds no `connections`, whose thread must not end on itself.
class remote_session : public std::enable_shared_from_this<remote_session> {
public:
    remote_session(std::shared_ptr<http_client> http, remote_sandbox_options options, bool owns_connections);

    [[nodiscard]] const boost::asio::any_io_executor& strand() const noexcept { return http_->strand(); }

    /// Opens unless open; whoever comes meanwhile waits for the same open. It goes on when a caller is
    /// cancelled.
    [[nodiscard]] task<outcome<void>> start();
    [[nodiscard]] task<bool> stop(bool purge);

    /// One operation. Nothing when there is no usable answer, whatever the reason. `body` without value:
    /// nothing is sent.
    [[nodiscard]] task<std::optional<boost::json::value>>
    operation(std::string name, std::optional<std::string> body, bool repeatable);
    [[nodiscard]] task<execute_response> execute(std::string command,
                                                 std::optional<std::chrono::seconds> timeout);

    [[nodiscard]] task<std::optional<session_info>> info(bool usage);

    [[nodiscard]] std::string session_id() const;
    [[nodiscard]] std::chrono::milliseconds server_timeout() const;

private:
    [[nodiscard]] task<outcome<void>> open_now();
    [[nodiscard]] task<bool> close_now(bool purge);
    [[nodiscard]] task<outcome<session_created>> ask_open();
    [[nodiscard]] task<std::chrono::milliseconds> ask_ceiling();
    [[nodiscard]] task<std::optional<boost::json::value>>
    send(std::string name, std::string body, std::chrono::milliseconds silence, bool repeatable);

    std::shared_ptr<http_client> http_;
    remote_sandbox_options options_;
    bool owns_connections_;
    bool started_ = false;
    std::string session_token_;
    std::shared_ptr<strand_call<outcome<void>>> opening_;
    std::shared_ptr<strand_call<bool>> closing_;

    mutable std::mutex mutex_; ///< of what follows
    std::string session_id_;
    std::chrono::milliseconds server_timeout_;
};

} // namespace sandboxd::client
