#include "sandbox/docker/watch.hpp"

#include "core/log.hpp"
#include "core/spawn.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <vector>

namespace sandboxd::sandboxes::docker_backend {

namespace asio = boost::asio;

namespace {

using namespace std::chrono_literals;

constexpr auto ping_limit = 5s;
constexpr auto call_limit = 30s;
constexpr std::chrono::milliseconds in_trouble = 500ms;
/// A daemon may still carry out a call that was given up so long ago.
constexpr auto late_effects = 120s;

bool runs(const std::string& state) {
    return state == "running" || state == "paused" || state == "restarting";
}

} // namespace

daemon_watch::daemon_watch(const asio::any_io_executor& executor, core::gate& background,
                           std::shared_ptr<docker::engine> engine, std::string service_uuid,
                           std::chrono::milliseconds look_every)
    : strand_(asio::make_strand(executor)),
      background_(background),
      engine_(std::move(engine)),
      service_uuid_(std::move(service_uuid)),
      look_every_(look_every) {}

void daemon_watch::begin() {
    core::spawn(strand_, "docker events", background_, follow(shared_from_this()), stop_following_);
    core::spawn(strand_, "docker daemon", background_, look_after(shared_from_this()));
}

void daemon_watch::close() {
    closed_->set();
    asio::post(strand_, [self = shared_from_this()] {
        self->stop_following_->emit(asio::cancellation_type::terminal);
    });
}

docker::filter_list daemon_watch::ours() const {
    return {{"label", std::string(docker::label_service) + "=" + service_uuid_}};
}

void daemon_watch::add(const std::string& container, const std::shared_ptr<container_fate>& fate) {
    const std::lock_guard lock(mutex_);
    fates_[container] = fate;
}

void daemon_watch::forget(const std::string& container, const std::shared_ptr<container_fate>& fate) {
    const std::lock_guard lock(mutex_);
    const auto found = fates_.find(container);
    if (found != fates_.end() && found->second.lock() == fate) {
        fates_.erase(found);
    }
}

void daemon_watch::remove_later(const std::string& slot) {
    const std::lock_guard lock(mutex_);
    leftovers_[slot] = {std::chrono::steady_clock::now() + late_effects};
}

void daemon_watch::end_later(const std::string& slot) {
    const std::lock_guard lock(mutex_);
    leftovers_[slot] = {std::chrono::steady_clock::now() + late_effects, true};
}

task<void> daemon_watch::use_again(std::string slot) {
    std::shared_ptr<core::shared_event> under_way;
    {
        const std::lock_guard lock(mutex_);
        leftovers_.erase(slot);
        under_way = clearing_ == slot ? cleared_ : nullptr;
    }
    if (under_way) {
        co_await under_way->wait();
    }
}

std::optional<std::string> daemon_watch::degraded() const {
    const std::lock_guard lock(mutex_);
    return trouble_;
}

void daemon_watch::note(std::optional<std::string> trouble) {
    bool changed = false;
    {
        const std::lock_guard lock(mutex_);
        changed = trouble.has_value() != trouble_.has_value();
        trouble_ = trouble;
    }
    if (changed && trouble) {
        core::log::error("degraded: {}", *trouble);
    } else if (changed) {
        core::log::info("the docker daemon answers again");
    }
}

task<void> daemon_watch::follow(std::shared_ptr<daemon_watch> self) {
    docker::event_sink sink;
    sink.connected = [self](bool again) {
        if (again) {
            core::spawn(self->strand_, "docker: what was missed", self->background_, self->take_stock(self));
        }
    };
    sink.event = [self](const docker::engine_event& one) { self->on_event(one); };
    sink.lost = [self](const docker::engine_error& why) {
        if (!self->closed_->is_set()) {
            core::log::warning("docker events: {}", why.message);
        }
    };
    auto filters = ours();
    filters.emplace_back("type", "container");
    filters.emplace_back("event", "die");
    filters.emplace_back("event", "oom");
    co_await engine_->watch_events(std::move(filters), std::move(sink));
}

void daemon_watch::on_event(const docker::engine_event& one) {
    std::shared_ptr<container_fate> fate;
    {
        const std::lock_guard lock(mutex_);
        const auto found = fates_.find(one.id);
        fate = found == fates_.end() ? nullptr : found->second.lock();
    }
    if (!fate) {
        return;
    }
    if (one.action == "oom") {
        ++fate->oom_kills;
    } else if (one.action == "die") {
        fate->end->tell();
    }
}

/// The daemon is back, its memory of events is short: whose container does not run any more has ended.
task<void> daemon_watch::take_stock(std::shared_ptr<daemon_watch> self) {
    std::map<std::string, std::weak_ptr<container_fate>> known;
    {
        const std::lock_guard lock(mutex_);
        known = fates_; // before the list: what is added from now on need not be in it
    }
    const auto listed = co_await engine_->list(ours(), call_limit);
    if (!listed) {
        core::log::warning("docker: {}", listed.error().message);
        co_return; // the event stream breaks as well then, and comes here again
    }
    for (const auto& one : *listed) {
        if (runs(one.state)) {
            known.erase(one.id);
        }
    }
    for (const auto& [container, weak] : known) {
        if (const auto fate = weak.lock()) {
            fate->end->tell();
        }
    }
}

task<void> daemon_watch::look_after(std::shared_ptr<daemon_watch> self) {
    while (!closed_->is_set()) {
        const auto answered = co_await engine_->ping(ping_limit);
        if (closed_->is_set()) {
            break;
        }
        note(answered ? std::optional<std::string>() : std::optional(answered.error().message));
        if (answered) {
            co_await clear_leftovers();
        }
        co_await closed_->wait_for(answered ? look_every_ : std::min(look_every_, in_trouble));
    }
}

/// Empties a slot, or ends what runs in it.
task<docker::answer<void>> daemon_watch::clear(std::string slot, bool stays) {
    auto filters = ours();
    filters.emplace_back("label", std::string(docker::label_slot) + "=" + slot);
    if (!stays) {
        const auto removed = co_await docker::remove_matching(engine_, std::move(filters), call_limit);
        co_return removed ? docker::answer<void>() : removed.error();
    }
    const auto found = co_await engine_->list(std::move(filters), call_limit);
    if (!found) {
        co_return found.error();
    }
    for (const auto& one : *found) {
        if (!runs(one.state)) {
            continue;
        }
        if (const auto killed = co_await engine_->kill(one.id, "KILL", call_limit); !killed) {
            co_return killed.error();
        }
    }
    co_return docker::answer<void>();
}

task<void> daemon_watch::clear_leftovers() {
    std::vector<std::string> slots;
    {
        const std::lock_guard lock(mutex_);
        for (const auto& [slot, state] : leftovers_) {
            slots.push_back(slot);
        }
    }
    for (const auto& slot : slots) {
        if (closed_->is_set()) {
            co_return; // the next start finds them by their label
        }
        const auto done = std::make_shared<core::shared_event>();
        bool stays = false;
        {
            const std::lock_guard lock(mutex_);
            const auto found = leftovers_.find(slot);
            if (found == leftovers_.end()) {
                continue; // it is used again
            }
            stays = found->second.stays;
            clearing_ = slot;
            cleared_ = done;
        }
        const auto cleared = co_await clear(slot, stays);
        {
            const std::lock_guard lock(mutex_);
            clearing_.clear();
            const auto found = leftovers_.find(slot);
            if (cleared && found != leftovers_.end() &&
                std::chrono::steady_clock::now() >= found->second.until) {
                leftovers_.erase(found);
            }
        }
        done->set();
        if (!cleared) {
            core::log::warning("docker: what is left of slot {} could not be {}: {}", slot,
                               stays ? "ended" : "removed", cleared.error().message);
        }
    }
}

} // namespace sandboxd::sandboxes::docker_backend
