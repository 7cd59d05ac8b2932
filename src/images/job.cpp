#include "images/job.hpp"

#include "core/log.hpp"

#include <boost/asio/post.hpp>

#include <utility>

namespace sandboxd::images {

job_stop::job_stop(const boost::asio::any_io_executor& executor)
    : strand(boost::asio::make_strand(executor)),
      signal(std::make_shared<boost::asio::cancellation_signal>()) {}

void job_stop::now() const {
    boost::asio::post(strand, [signal = signal] { signal->emit(boost::asio::cancellation_type::terminal); });
}

job::job(const boost::asio::any_io_executor& executor, std::shared_ptr<core::clock> clock,
         std::chrono::milliseconds between_lines)
    : stop(executor),
      clock_(std::move(clock)),
      between_lines_(between_lines),
      since_(clock_->steady()),
      last_line_(since_) {}

void job::enter(warming::state doing) {
    const std::lock_guard lock(mutex_);
    doing_ = doing;
    since_ = clock_->steady();
    last_line_ = since_;
    latest_ = {};
}

void job::note(const progress& news) {
    const std::lock_guard lock(mutex_);
    latest_.done = news.done;
    latest_.of = news.of;
    if (!news.text.empty()) {
        latest_.text = news.text;
    }
    const auto now = clock_->steady();
    if (now - last_line_ < between_lines_ || latest_.text.empty()) {
        return;
    }
    last_line_ = now;
    const char* doing = name_of(doing_);
    if (doing_ == warming::state::building && latest_.of != 0) {
        core::log::info("{} {}: step {} of {}: {}", doing, reference, latest_.done, latest_.of, latest_.text);
    } else {
        core::log::info("{} {}: {}", doing, reference, latest_.text);
    }
}

warming job::state() const {
    const std::lock_guard lock(mutex_);
    warming out;
    out.alias = alias;
    out.reference = reference;
    out.doing = doing_;
    out.done = latest_.done;
    out.of = latest_.of;
    out.attempt = attempt;
    out.since = std::chrono::duration_cast<std::chrono::seconds>(clock_->steady() - since_);
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
