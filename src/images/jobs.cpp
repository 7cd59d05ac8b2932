#include "images/jobs.hpp"

#include "core/deadline.hpp"
#include "core/log.hpp"
#include "core/spawn.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>

#include <exception>
#include <utility>

namespace sandboxd::images {

namespace asio = boost::asio;

namespace {

using std::string;

/// For a sandbox to begin that was waiting for its image.
constexpr auto moment = std::chrono::minutes(10);

error closing() {
    return {errc::unavailable, "the service is stopping: no image is made ready any more"};
}

error too_slow(const job& one, const char* what, std::chrono::milliseconds limit) {
    const auto seconds = std::chrono::duration<double>(limit).count();
    return {errc::timeout,
            "image " + one.reference + " was not " + what + " within " + fmt::format("{:g}", seconds) + " s"};
}

/// Until it is cancelled.
task<void> tell_signs_of_life(std::shared_ptr<job> one) {
    while (co_await core::sleep_for(one->note_life())) {
    }
}

/// Whatever goes wrong is an outcome.
task<result<void>> guarded(std::shared_ptr<job> one, task<result<void>> work) {
    try {
        co_return co_await std::move(work);
    } catch (const boost::system::system_error& e) {
        if (e.code() == asio::error::operation_aborted) {
            co_return closing();
        }
        core::log::error("making image {} ready failed: {}", one->reference, e.what());
    } catch (const std::exception& e) {
        core::log::error("making image {} ready failed: {}", one->reference, e.what());
    }
    co_return error{errc::internal, "image " + one->reference + ": an internal error"};
}

/// As core::with_timeout, with a line in the log now and then. An exception would not end it.
task<std::optional<result<void>>> watched(std::shared_ptr<job> one, task<result<void>> work,
                                          std::chrono::milliseconds limit) {
    using namespace asio::experimental::awaitable_operators;
    auto limited = core::with_timeout(guarded(one, std::move(work)), limit);
    auto signs = tell_signs_of_life(one);
    auto first = co_await (std::move(limited) || std::move(signs));
    if (first.index() == 1) { // they end only when this coroutine is cancelled
        throw boost::system::system_error(asio::error::operation_aborted);
    }
    co_return std::get<0>(std::move(first));
}

} // namespace

jobs::jobs(std::shared_ptr<const keeper_options> with) : with_(std::move(with)) {
    for (const auto& one : with_->allowed) {
        if (one.how) {
            recipes_[one.how->tag] = *one.how;
        }
    }
}

void jobs::learn(recipe how) {
    const std::lock_guard lock(mutex_);
    auto tag = how.tag;
    recipes_.insert_or_assign(std::move(tag), std::move(how));
}

bool jobs::always_builds(const string& reference) const {
    const std::lock_guard lock(mutex_);
    const auto found = recipes_.find(reference);
    return found != recipes_.end() && !found->second.from.cache_image;
}

bool jobs::is_closed() const {
    const std::lock_guard lock(mutex_);
    return closed_;
}

/// Under the mutex: which alias stands for it, for people.
string jobs::known_as(const string& reference) const {
    for (const auto& one : with_->allowed) {
        if (one.reference == reference) {
            return one.alias;
        }
    }
    return reference;
}

std::vector<string> jobs::wanted() const {
    const std::lock_guard lock(mutex_);
    std::vector<string> out;
    for (const auto& one : with_->allowed) {
        out.push_back(one.reference);
    }
    for (const auto& [reference, one] : jobs_) {
        out.push_back(reference);
        if (one->how && one->how->from.base_image) {
            out.push_back(*one->how->from.base_image);
        }
    }
    const auto now = with_->clock->steady();
    for (const auto& [reference, when] : lately_) {
        if (now - when < moment) {
            out.push_back(reference);
        }
    }
    return out;
}

/// The job for an image: the one under way, or a new one; null when closed.
std::shared_ptr<job> jobs::start(const string& reference, std::uint32_t number) {
    std::shared_ptr<job> fresh;
    {
        const std::lock_guard lock(mutex_);
        if (closed_) {
            return nullptr;
        }
        auto& one = jobs_[reference];
        if (one) {
            return one;
        }
        fresh = std::make_shared<job>(*with_);
        fresh->reference = reference;
        fresh->alias = known_as(reference);
        fresh->attempt = number;
        if (const auto how = recipes_.find(reference); how != recipes_.end()) {
            fresh->how = how->second;
        }
        one = fresh;
    }
    // Not under the mutex: its first steps may be run here.
    if (!core::spawn(fresh->stop.strand(), "making an image ready", *with_->background,
                     life(shared_from_this(), fresh), fresh->stop.signal())) {
        finish(fresh, closing());
        settle(fresh);
    }
    return fresh;
}

/// Out of the table before anybody is told: who asks next starts anew.
void jobs::finish(const std::shared_ptr<job>& one, result<void> outcome) {
    {
        const std::lock_guard lock(mutex_);
        jobs_.erase(one->reference);
        settling_.insert(one);
        const auto now = with_->clock->steady();
        std::erase_if(lately_, [&](const auto& known) { return now - known.second >= moment; });
        if (outcome) {
            lately_[one->reference] = now;
        }
        one->outcome = std::move(outcome);
    }
    one->done.set();
}

void jobs::settle(const std::shared_ptr<job>& one) {
    {
        const std::lock_guard lock(mutex_);
        settling_.erase(one);
    }
    one->settled.set();
}

task<result<void>> jobs::attempt(string reference, std::uint32_t number) {
    return wait(shared_from_this(), std::move(reference), number, false);
}

task<result<void>> jobs::attempt_whole(string reference, std::uint32_t number) {
    return wait(shared_from_this(), std::move(reference), number, true);
}

task<result<void>> jobs::wait(self_pointer self, string reference, std::uint32_t number, bool whole) {
    const auto one = start(reference, number);
    if (!one) {
        co_return closing();
    }
    co_await one->done.wait();
    if (whole) {
        co_await one->settled.wait();
    }
    co_return one->outcome;
}

task<void> jobs::life(self_pointer self, std::shared_ptr<job> one) {
    if (!one->stop.begin()) {
        finish(one, closing());
        settle(one);
        co_return;
    }
    auto outcome = co_await guarded(one, work(one));
    const bool built = outcome.has_value() && one->state().doing == warming::state::building;
    finish(one, !outcome && is_closed() ? closing() : std::move(outcome));
    if (built) {
        try {
            co_await prune(one);
        } catch (const std::exception& e) { // the end of the service, commonly
            core::log::debug("older images of {} were not removed: {}", one->reference, e.what());
        }
    }
    settle(one);
}

task<result<void>> jobs::work(std::shared_ptr<job> one) {
    if (one->how && !one->how->from.cache_image) {
        co_return co_await make(one);
    }
    const auto here = co_await with_->source->present(one->reference);
    if (!here) {
        co_return here.error();
    }
    if (*here) {
        co_return result<void>();
    }
    co_return one->how ? co_await make(one) : co_await fetch(one);
}

task<result<void>> jobs::fetch(std::shared_ptr<job> one) {
    one->enter(warming::state::pulling);
    core::log::info("image {} is not here: pulling it", one->reference);
    auto work = with_->source->pull(one->reference, sink_of(one));
    co_return co_await follow(one, std::move(work), "pulled", with_->pull_limit);
}

task<result<void>> jobs::make(std::shared_ptr<job> one) {
    one->enter(warming::state::building);
    core::log::info("building image {} on {} ({} steps)", one->reference, *one->how->from.base_image,
                    one->how->steps.size() + 1);
    auto work = with_->source->build(*one->how, sink_of(one));
    co_return co_await follow(one, std::move(work), "built", with_->build_limit);
}

/// Says how it ended; `what` became of the image.
task<result<void>> jobs::follow(std::shared_ptr<job> one, task<result<void>> work, const char* what,
                                std::chrono::milliseconds limit) {
    auto done = co_await watched(one, std::move(work), limit);
    if (!done) {
        co_return too_slow(*one, what, limit);
    }
    if (*done) {
        core::log::info("image {} is {} ({} s)", one->reference, what, one->age().count());
    }
    co_return std::move(*done);
}

/// The runtime's older images (contract 4.4.8), but those that a sandbox is about to stand on. Nobody waits
/// for it but a pass.
task<void> jobs::prune(std::shared_ptr<job> one) {
    co_await with_->source->prune(one->how->from.name, wanted());
}

std::map<string, warming> jobs::snapshot() const {
    const std::lock_guard lock(mutex_);
    std::map<string, warming> out;
    for (const auto& [reference, one] : jobs_) {
        out[reference] = one->state();
    }
    return out;
}

void jobs::close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    for (const auto& [reference, one] : jobs_) {
        one->stop.now();
    }
    for (const auto& one : settling_) {
        one->stop.now();
    }
}

} // namespace sandboxd::images
