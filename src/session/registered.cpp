#include "session/registered.hpp"

namespace sandboxd::session {

result<registered> registered::enter(session_ptr one, std::string run_id) {
    auto mine = std::make_shared<ticket>(std::move(run_id));
    {
        const std::lock_guard lock(one->mutex);
        if (!is_listed(one->at)) {
            return error{errc::not_found, "No such session: " + one->record.id};
        }
        if (!one->commands.try_emplace(mine->run_id(), mine).second) {
            return error{errc::exists, "Run " + mine->run_id() + " is already running"};
        }
    }
    return registered(std::move(one), std::move(mine));
}

registered::~registered() {
    if (!mine_) {
        return;
    }
    {
        const std::lock_guard lock(session_->mutex);
        session_->commands.erase(mine_->run_id());
    }
    mine_->wake_by({});
    mine_->end();
}

} // namespace sandboxd::session
