#include "images/pass.hpp"

#include "core/log.hpp"
#include "core/spawn.hpp"

#include <exception>

namespace sandboxd::images {

namespace asio = boost::asio;

namespace {

using std::string;

constexpr std::uint32_t background_attempts = 2;

} // namespace

void pass::note(const wanted_image& image, warming::state doing, std::uint32_t attempt) {
    warming noted;
    noted.alias = image.alias;
    noted.reference = image.reference;
    noted.doing = doing;
    noted.attempt = attempt;
    const std::lock_guard lock(mutex_);
    queue_.insert_or_assign(image.alias, std::pair(std::move(noted), with_->clock->steady()));
}

void pass::forget(const string& alias) {
    const std::lock_guard lock(mutex_);
    queue_.erase(alias);
}

task<std::vector<string>> pass::run(std::uint32_t attempts) {
    return all(shared_from_this(), attempts);
}

task<std::vector<string>> pass::all(self_pointer self, std::uint32_t attempts) {
    for (const auto& image : with_->allowed) {
        note(image, warming::state::queued, 1);
    }
    std::vector<string> failed;
    for (const auto& image : with_->allowed) {
        if (!co_await one(self, image, attempts)) {
            failed.push_back(image.alias);
        }
        forget(image.alias);
    }
    if (failed.empty()) {
        co_await with_->source->sweep(jobs_->wanted());
    }
    co_return failed;
}

task<bool> pass::one(self_pointer self, wanted_image image, std::uint32_t attempts) {
    for (std::uint32_t number = 1;; ++number) {
        const auto began = with_->clock->steady();
        const auto done = co_await jobs_->attempt_whole(image.reference, number);
        if (done) {
            const std::chrono::duration<double> took = with_->clock->steady() - began;
            core::log::info("runtime {} is ready ({:.1f} s)", image.alias, took.count());
            co_return true;
        }
        if (jobs_->is_closed()) {
            co_return false;
        }
        if (number >= attempts) {
            core::log::error("Could not prepare runtime {}; it will be tried again when a session asks: {}",
                             image.alias, done.error().message);
            co_return false;
        }
        core::log::warning("Preparing runtime {} failed (attempt {} of {}), trying again in {} s: {}",
                           image.alias, number, attempts, with_->between_attempts.count() / 1000,
                           done.error().message);
        note(image, warming::state::waiting, number + 1);
        if (!co_await with_->pause(with_->between_attempts)) {
            co_return false;
        }
    }
}

task<void> pass::background(self_pointer self, std::shared_ptr<job_stop> stop) {
    if (!stop->begin()) {
        co_return;
    }
    try {
        const auto failed = co_await all(self, background_attempts);
        if (failed.empty()) {
            core::log::info("the images of all runtimes are here");
        }
    } catch (const boost::system::system_error& e) {
        if (e.code() != asio::error::operation_aborted) {
            core::log::error("Prewarming the runtime allowlist failed: {}", e.what());
        }
    } catch (const std::exception& e) {
        core::log::error("Prewarming the runtime allowlist failed: {}", e.what());
    }
    const std::lock_guard lock(mutex_);
    queue_.clear();
}

void pass::begin() {
    auto stop = std::make_shared<job_stop>(with_->executor);
    {
        const std::lock_guard lock(mutex_);
        if (closed_ || stop_) {
            return;
        }
        stop_ = stop;
    }
    core::spawn(stop->strand(), "making the allowlist ready", *with_->background,
                background(shared_from_this(), stop), stop->signal());
}

std::map<string, warming> pass::snapshot() const {
    const std::lock_guard lock(mutex_);
    const auto now = with_->clock->steady();
    std::map<string, warming> out;
    for (const auto& [alias, noted] : queue_) {
        auto& shown = out[alias] = noted.first;
        shown.since = std::chrono::duration_cast<std::chrono::seconds>(now - noted.second);
    }
    return out;
}

void pass::close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    if (stop_) {
        stop_->now();
    }
}

} // namespace sandboxd::images
