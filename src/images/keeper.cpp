#include "images/keeper.hpp"

#include "core/deadline.hpp"
#include "core/event.hpp"
#include "core/log.hpp"
#include "core/spawn.hpp"
#include "images/job.hpp"

#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

namespace sandboxd::images {

namespace asio = boost::asio;

namespace {

using std::string;

constexpr std::uint32_t background_attempts = 2;

error closing() {
    return {errc::unavailable, "the service is stopping: no image is made ready any more"};
}

class live_keeper final : public keeper, public std::enable_shared_from_this<live_keeper> {
public:
    explicit live_keeper(keeper_options options) : with_(std::move(options)) {
        if (!with_.pause) {
            with_.pause = [](std::chrono::steady_clock::duration time) { return core::sleep_for(time); };
        }
        std::sort(with_.allowed.begin(), with_.allowed.end(),
                  [](const auto& a, const auto& b) { return a.alias < b.alias; });
        for (const auto& one : with_.allowed) {
            if (one.how) {
                recipes_[one.how->tag] = *one.how;
            }
        }
    }

    void learn(recipe how) override {
        const std::lock_guard lock(mutex_);
        auto tag = how.tag;
        recipes_.insert_or_assign(std::move(tag), std::move(how));
    }

    bool always_builds(const string& reference) const override {
        const std::lock_guard lock(mutex_);
        const auto found = recipes_.find(reference);
        return found != recipes_.end() && !found->second.from.cache_image;
    }

    task<result<void>> ready(string reference) override { return attempt(shared_from_this(), reference, 1); }
    task<std::vector<string>> warm(std::uint32_t attempts) override {
        return pass(shared_from_this(), attempts);
    }
    void begin_warming() override;
    std::vector<warming> snapshot() const override;
    void close() override;

private:
    using self_pointer = std::shared_ptr<live_keeper>;

    [[nodiscard]] task<result<void>> attempt(self_pointer self, string reference, std::uint32_t number);
    [[nodiscard]] std::shared_ptr<job> start(const string& reference, std::uint32_t number);
    void finish(job& one, result<void> outcome);
    [[nodiscard]] task<void> life(self_pointer self, std::shared_ptr<job> one);
    [[nodiscard]] task<result<void>> work(std::shared_ptr<job> one);
    [[nodiscard]] task<result<void>> fetch(std::shared_ptr<job> one);
    [[nodiscard]] task<result<void>> make(std::shared_ptr<job> one);
    [[nodiscard]] task<std::vector<string>> pass(self_pointer self, std::uint32_t attempts);
    [[nodiscard]] task<bool> prepare(self_pointer self, wanted_image one, std::uint32_t attempts);
    [[nodiscard]] task<void> background(self_pointer self);
    [[nodiscard]] std::vector<string> references() const;
    [[nodiscard]] string known_as(const string& reference) const;
    void note_queue(const string& alias, std::optional<warming> state);
    [[nodiscard]] bool is_closed() const {
        const std::lock_guard lock(mutex_);
        return closed_;
    }

    keeper_options with_; ///< `allowed` sorted by alias
    mutable std::mutex mutex_;
    std::map<string, recipe> recipes_;            ///< by tag
    std::map<string, std::shared_ptr<job>> jobs_; ///< by reference
    std::map<string, std::pair<warming, std::chrono::steady_clock::time_point>>
        queue_;                      ///< by alias: the pass
    std::shared_ptr<job_stop> pass_; ///< the one in the background
    bool closed_ = false;
};

/// Under the mutex: which alias stands for it, for people.
string live_keeper::known_as(const string& reference) const {
    for (const auto& one : with_.allowed) {
        if (one.reference == reference) {
            return one.alias;
        }
    }
    return reference;
}

std::vector<string> live_keeper::references() const {
    std::vector<string> out;
    for (const auto& one : with_.allowed) {
        out.push_back(one.reference);
    }
    return out;
}

/// The job for an image: the one under way, or a new one; null when closed.
std::shared_ptr<job> live_keeper::start(const string& reference, std::uint32_t number) {
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
        fresh = std::make_shared<job>(with_.executor, with_.clock, with_.between_lines);
        fresh->reference = reference;
        fresh->alias = known_as(reference);
        fresh->attempt = number;
        if (const auto how = recipes_.find(reference); how != recipes_.end()) {
            fresh->how = how->second;
        }
        one = fresh;
    }
    // Not under the mutex: its first steps may be run here.
    if (!core::spawn(fresh->stop.strand, "making an image ready", *with_.background,
                     life(shared_from_this(), fresh), fresh->stop.signal)) {
        finish(*fresh, closing());
    }
    return fresh;
}

/// Out of the table before anybody is told: who asks next starts anew.
void live_keeper::finish(job& one, result<void> outcome) {
    {
        const std::lock_guard lock(mutex_);
        jobs_.erase(one.reference);
        one.outcome = std::move(outcome);
    }
    one.done.set();
}

task<result<void>> live_keeper::attempt(self_pointer self, string reference, std::uint32_t number) {
    const auto one = start(reference, number);
    if (!one) {
        co_return closing();
    }
    co_await one->done.wait();
    co_return one->outcome;
}

task<void> live_keeper::life(self_pointer self, std::shared_ptr<job> one) {
    result<void> outcome = closing();
    try {
        outcome = co_await work(one);
    } catch (const boost::system::system_error& e) {
        if (e.code() != asio::error::operation_aborted) {
            core::log::error("making image {} ready failed: {}", one->reference, e.what());
            outcome = error{errc::internal, "image " + one->reference + ": an internal error"};
        }
    } catch (const std::exception& e) {
        core::log::error("making image {} ready failed: {}", one->reference, e.what());
        outcome = error{errc::internal, "image " + one->reference + ": an internal error"};
    }
    finish(*one, !outcome && is_closed() ? closing() : std::move(outcome));
}

task<result<void>> live_keeper::work(std::shared_ptr<job> one) {
    if (one->how && !one->how->from.cache_image) {
        co_return co_await make(one);
    }
    const auto here = co_await with_.source->present(one->reference);
    if (!here) {
        co_return here.error();
    }
    if (*here) {
        co_return result<void>();
    }
    co_return one->how ? co_await make(one) : co_await fetch(one);
}

namespace {
error too_slow(const job& one, const char* what, std::chrono::milliseconds limit) {
    const auto seconds = std::chrono::duration<double>(limit).count();
    return {errc::timeout,
            "image " + one.reference + " was not " + what + " within " + fmt::format("{:g}", seconds) + " s"};
}
} // namespace

task<result<void>> live_keeper::fetch(std::shared_ptr<job> one) {
    one->enter(warming::state::pulling);
    core::log::info("image {} is not here: pulling it", one->reference);
    auto work = with_.source->pull(one->reference, sink_of(one));
    auto done = co_await core::with_timeout(std::move(work), with_.pull_limit);
    if (!done) {
        co_return too_slow(*one, "pulled", with_.pull_limit);
    }
    if (*done) {
        core::log::info("image {} is pulled ({} s)", one->reference, one->age().count());
    }
    co_return std::move(*done);
}

task<result<void>> live_keeper::make(std::shared_ptr<job> one) {
    one->enter(warming::state::building);
    core::log::info("building image {} on {} ({} steps)", one->reference, *one->how->from.base_image,
                    one->how->steps.size());
    auto work = with_.source->build(*one->how, sink_of(one));
    auto done = co_await core::with_timeout(std::move(work), with_.build_limit);
    if (!done) {
        co_return too_slow(*one, "built", with_.build_limit);
    }
    if (*done) {
        core::log::info("image {} is built ({} s)", one->reference, one->age().count());
        auto kept = references();
        kept.push_back(one->reference);
        co_await with_.source->prune(one->how->from.name, std::move(kept));
    }
    co_return std::move(*done);
}

void live_keeper::note_queue(const string& alias, std::optional<warming> state) {
    const std::lock_guard lock(mutex_);
    if (state) {
        queue_.insert_or_assign(alias, std::pair(std::move(*state), with_.clock->steady()));
    } else {
        queue_.erase(alias);
    }
}

/// One runtime of a pass.
task<bool> live_keeper::prepare(self_pointer self, wanted_image one, std::uint32_t attempts) {
    for (std::uint32_t number = 1;; ++number) {
        const auto began = with_.clock->steady();
        const auto done = co_await attempt(self, one.reference, number);
        if (done) {
            const std::chrono::duration<double> took = with_.clock->steady() - began;
            core::log::info("runtime {} is ready ({:.1f} s)", one.alias, took.count());
            co_return true;
        }
        if (is_closed()) {
            co_return false;
        }
        if (number >= attempts) {
            core::log::error("Could not prepare runtime {}; it will be tried again when a session asks: {}",
                             one.alias, done.error().message);
            co_return false;
        }
        core::log::warning("Preparing runtime {} failed (attempt {} of {}), trying again in {} s: {}",
                           one.alias, number, attempts, with_.between_attempts.count() / 1000,
                           done.error().message);
        warming state;
        state.alias = one.alias;
        state.reference = one.reference;
        state.doing = warming::state::waiting;
        state.attempt = number + 1;
        note_queue(one.alias, std::move(state));
        if (!co_await with_.pause(with_.between_attempts)) {
            co_return false;
        }
    }
}

task<std::vector<string>> live_keeper::pass(self_pointer self, std::uint32_t attempts) {
    for (const auto& one : with_.allowed) {
        note_queue(one.alias, warming{one.alias, one.reference, warming::state::queued, 0, 0, 1, {}});
    }
    std::vector<string> failed;
    for (const auto& one : with_.allowed) {
        if (!co_await prepare(self, one, attempts)) {
            failed.push_back(one.alias);
        }
        note_queue(one.alias, std::nullopt);
    }
    if (failed.empty()) {
        co_await with_.source->sweep(references());
    }
    co_return failed;
}

task<void> live_keeper::background(self_pointer self) {
    try {
        const auto failed = co_await pass(self, background_attempts);
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

void live_keeper::begin_warming() {
    auto stop = std::make_shared<job_stop>(with_.executor);
    {
        const std::lock_guard lock(mutex_);
        if (closed_ || pass_) {
            return;
        }
        pass_ = stop;
    }
    core::spawn(stop->strand, "making the allowlist ready", *with_.background, background(shared_from_this()),
                stop->signal);
}

std::vector<warming> live_keeper::snapshot() const {
    const std::lock_guard lock(mutex_);
    const auto now = with_.clock->steady();
    std::map<string, warming> out;
    for (const auto& [alias, noted] : queue_) {
        auto& one = out[alias] = noted.first;
        one.since = std::chrono::duration_cast<std::chrono::seconds>(now - noted.second);
    }
    for (const auto& [reference, one] : jobs_) {
        const auto state = one->state();
        bool named = false;
        for (const auto& entry : with_.allowed) {
            if (entry.reference == reference) {
                named = true;
                auto& shown = out[entry.alias] = state;
                shown.alias = entry.alias;
            }
        }
        if (!named) {
            out[reference] = state;
        }
    }
    std::vector<warming> list;
    for (auto& [alias, one] : out) {
        list.push_back(std::move(one));
    }
    return list;
}

void live_keeper::close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    for (const auto& [reference, one] : jobs_) {
        one->stop.now();
    }
    if (pass_) {
        pass_->now();
    }
}

} // namespace

const char* name_of(warming::state doing) noexcept {
    switch (doing) {
    case warming::state::queued:
        return "queued";
    case warming::state::looking:
        return "looking";
    case warming::state::pulling:
        return "pulling";
    case warming::state::building:
        return "building";
    case warming::state::waiting:
        return "waiting";
    }
    return "";
}

std::shared_ptr<keeper> create_keeper(keeper_options options) {
    return std::make_shared<live_keeper>(std::move(options));
}

} // namespace sandboxd::images
