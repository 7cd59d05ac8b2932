#include "images/job.hpp"

#include "core/log.hpp"

#include <boost/asio/post.hpp>

#include <utility>

namespace sandboxd::images {

job_stop::job_stop(const boost::asio::any_io_executor& executor)
    : strand_(boost::asio::make_strand(executor)),
      signal_(std::make_shared<boost::asio::cancellation_signal>()) {}

void job_stop::now() const {
    boost::asio::post(strand_, [signal = signal_, state = state_] {
        state->asked = true;
        if (state->begun) {
            signal->emit(boost::asio::cancellation_type::terminal);
        }
    });
}

bool job_stop::begin() const {
    state_->begun = true;
    return !state_->asked;
}

job::job(const keeper_options& with)
    : stop(with.executor),
      clock_(with.clock),
      say_(with.say),
      between_lines_(with.between_lines),
      quiet_(with.quiet),
      since_(clock_->steady()) {}

void job::enter(warming::state doing) {
    const std::lock_guard lock(mutex_);
    doing_ = doing;
    since_ = clock_->steady();
    lines_.emplace(name_of(doing) + (" " + reference), since_, between_lines_, quiet_);
}

void job::note(const progress& news) {
    std::optional<std::string> line;
    {
        const std::lock_guard lock(mutex_);
        if (lines_) {
            line = lines_->note(news, clock_->steady());
        }
    }
    if (line) {
        say_(*line);
    }
}

std::chrono::steady_clock::duration job::note_life() {
    std::optional<std::string> line;
    std::chrono::steady_clock::duration left = quiet_;
    {
        const std::lock_guard lock(mutex_);
        const auto now = clock_->steady();
        if (lines_) {
            line = lines_->sign_of_life(now);
            left = lines_->quiet_until() - now;
        }
    }
    if (line) {
        say_(*line);
    }
    return left;
}

warming job::state() const {
    const std::lock_guard lock(mutex_);
    warming out;
    out.alias = alias;
    out.reference = reference;
    out.doing = doing_;
    out.attempt = attempt;
    out.since = std::chrono::duration_cast<std::chrono::seconds>(clock_->steady() - since_);
    if (lines_) {
        const auto& at = lines_->latest();
        out.of = at.of;
        out.step = doing_ == warming::state::building ? at.done : 0;
        out.done = out.step > 0 ? out.step - 1 : at.done;
    }
    return out;
}

std::chrono::seconds job::age() const {
    const std::lock_guard lock(mutex_);
    return std::chrono::duration_cast<std::chrono::seconds>(clock_->steady() - since_);
}

progress_sink sink_of(std::shared_ptr<job> one) {
    return [one = std::move(one)](const progress& news) { one->note(news); };
}

} // namespace sandboxd::images
