#pragma once

#include "session/session.hpp"

#include <memory>
#include <string>
#include <utility>

namespace sandboxd::session {

/// A command's place in the table of its session, from its request to its answer. The session's close and a
/// stop find it through its ticket.
class registered {
public:
    /// errc::not_found when the session is not listed any more, errc::exists when the run id is in use
    /// (N16.22).
    [[nodiscard]] static result<registered> enter(session_ptr one, std::string run_id);

    registered(registered&&) noexcept = default;
    registered& operator=(registered&&) = delete;
    ~registered();

    [[nodiscard]] const std::shared_ptr<ticket>& mine() const noexcept { return mine_; }

private:
    registered(session_ptr one, std::shared_ptr<ticket> mine)
        : session_(std::move(one)), mine_(std::move(mine)) {}

    session_ptr session_;
    std::shared_ptr<ticket> mine_; ///< null when moved from
};

} // namespace sandboxd::session
