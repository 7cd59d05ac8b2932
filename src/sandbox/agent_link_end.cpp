// The clock of a link and the ways it ends.

#include "core/log.hpp"
#include "sandbox/agent_link.hpp"

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/dispatch.hpp>

namespace sandboxd::sandboxes {

namespace asio = boost::asio;

/// The timer is only ever brought forward here, so a command whose deadline lies behind it costs nothing.
void agent_link::arm() {
    const auto due = std::min({core_.due(), greet_by_, close_by_});
    if (due >= armed_ || finished_) {
        return;
    }
    armed_ = due;
    timer_.expires_at(due);
    auto fired = [self = shared_from_this()](boost::system::error_code failed) {
        if (!failed) {
            self->on_timer();
        }
    };
    timer_.async_wait(asio::bind_executor(strand_, std::move(fired)));
}

void agent_link::on_timer() {
    const auto now = std::chrono::steady_clock::now();
    armed_ = time_point::max();
    if (close_by_ <= now) {
        drop_channel();
        finish(why_);
        return;
    }
    if (greet_by_ <= now) {
        core::log::warning("agent link: no welcome in time, connecting again");
        drop_channel();
    }
    const auto verdict = core_.tick(now);
    if (verdict == link_core::verdict::stuck) {
        break_down("a command could not be stopped");
        return;
    }
    if (verdict == link_core::verdict::dead) {
        core::log::warning("agent link: the agent is silent, connecting again");
        drop_channel();
    }
    settle();
}

void agent_link::note_lie(std::string_view what) {
    const auto now = std::chrono::steady_clock::now();
    core::log::warning("agent link: the agent broke the protocol: {}", what);
    if (lies_ == 0 || now - first_lie_ > options_.lies_within) {
        first_lie_ = now;
        lies_ = 0;
    }
    if (++lies_ >= options_.lies) {
        break_down("the sandbox's agent broke the protocol");
    }
}

void agent_link::break_down(std::string why) {
    if (closing_) {
        return;
    }
    closing_ = true;
    why_ = why;
    drop_channel();
    finish(why);
    if (told_.broken) {
        told_.broken(std::move(why));
    }
}

void agent_link::shutdown(std::string why) {
    asio::dispatch(strand_, [self = shared_from_this(), why = std::move(why)] {
        self->core_.shutdown();
        self->core_.fail_all(why);
        self->settle();
    });
}

void agent_link::close(std::string why) {
    asio::dispatch(strand_, [self = shared_from_this(), why = std::move(why)] {
        if (self->closing_) {
            return;
        }
        self->closing_ = true;
        self->why_ = why;
        self->back_off_.cancel();
        if (!self->channel_) {
            self->finish(why);
            return;
        }
        // The dead agent's last frames may lie in the socket, in front of its end-of-file.
        self->close_by_ = std::chrono::steady_clock::now() + self->options_.last_words;
        self->arm();
    });
}

void agent_link::detach() {
    asio::dispatch(strand_, [self = shared_from_this()] {
        if (!self->closing_) {
            self->closing_ = true;
            self->why_ = "the service has let go of the sandbox";
        }
        self->back_off_.cancel();
        self->drop_channel();
        self->finish(self->why_);
    });
}

void agent_link::finish(const std::string& why) {
    if (finished_) {
        return;
    }
    finished_ = true;
    timer_.cancel();
    core_.fail_all(why);
    running_ = 0;
    inherited_ = 0;
    usable_ = false;
    opened_->set();
}

} // namespace sandboxd::sandboxes
