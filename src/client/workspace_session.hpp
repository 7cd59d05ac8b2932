#pragma once

#include "client/session_link.hpp"
#include "client/strand_call.hpp"

#include <mutex>

namespace sandboxd::client {

/// The state of one sandboxd_workspace. All but ref() on the strand. It holds no `connections`, whose thread
/// must not end on itself.
class workspace_session : public std::enable_shared_from_this<workspace_session> {
public:
    workspace_session(std::shared_ptr<http_client> http, workspace_options options)
        : http_(std::move(http)), options_(std::move(options)), ref_(options_.ref) {}

    [[nodiscard]] const boost::asio::any_io_executor& strand() const noexcept { return http_->strand(); }

    /// Opens unless open; whoever comes meanwhile waits for the same open. It goes on when a caller is
    /// cancelled, who is held up by it, so that no session is opened that nobody knows.
    [[nodiscard]] task<outcome<link_ptr>> connect();

    [[nodiscard]] task<outcome<std::string>> working_dir();
    [[nodiscard]] task<outcome<void>> purge();
    [[nodiscard]] std::optional<workspace_ref> ref() const;

private:
    [[nodiscard]] task<outcome<link_ptr>> open_now();
    [[nodiscard]] task<outcome<http_answer>> ask_open();
    [[nodiscard]] task<outcome<service_policy>> ask_policy();

    std::shared_ptr<http_client> http_;
    workspace_options options_;
    link_ptr link_;
    std::shared_ptr<strand_call<outcome<link_ptr>>> opening_;
    std::optional<std::string> working_dir_;

    mutable std::mutex mutex_; ///< of what follows
    std::optional<workspace_ref> ref_;
};

} // namespace sandboxd::client
