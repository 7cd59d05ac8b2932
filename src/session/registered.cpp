#include "session/registered.hpp"

namespace sandboxd::session {

result<registered> registered::enter(session_ptr one, std::string run_id,
                                     std::shared_ptr<client_watch> watch) {
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
    if (watch) {
        watch->on_left([mine] { mine->client_left(); });
    }
    return registered(std::move(one), std::move(mine), std::move(watch));
}

registered::~registered() {
    if (!mine_) {
        return;
    }
    {
        const std::lock_guard lock(session_->mutex);
        session_->commands.erase(mine_->run_id());
    }
    if (watch_) {
        watch_->on_left({});
    }
    mine_->wake_by({});
    mine_->end();
}

} // namespace sandboxd::session
