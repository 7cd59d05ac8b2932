#include "core/event.hpp"
#include "core/secret.hpp"
#include "core/spawn.hpp"
#include "session/bounded.hpp"
#include "session/live_registry.hpp"

#include <utility>

namespace sandboxd::session {

error live_registry::no_such(std::string_view id) {
    return {errc::not_found, "No such session: " + std::string(id)};
}

error live_registry::leaving() {
    return {errc::unavailable, "The service is shutting down"};
}

bool live_registry::is_service(std::string_view header) const {
    return on_.authority.is_service(header);
}

auth::scope live_registry::authorize(std::string_view header, std::string_view id) const {
    if (on_.authority.is_service(header)) {
        return auth::scope::service;
    }
    if (header.size() != 43) { // no session's token
        return auth::scope::none;
    }
    if (const auto one = shards_.find(id); one && core::equal_secret(header, one->token)) {
        const std::lock_guard lock(one->mutex);
        if (is_listed(one->at)) {
            return auth::scope::session;
        }
        // The token of an open that has not been answered is nobody's yet.
        return one->at == phase::opening ? auth::scope::none : auth::scope::tombstone;
    }
    return tombstones_.contains(auth::token_authority::digest(id, header)) ? auth::scope::tombstone
                                                                           : auth::scope::none;
}

session_ptr live_registry::find_listed(std::string_view id) const {
    auto one = shards_.find(id);
    if (one) {
        const std::lock_guard lock(one->mutex);
        if (!is_listed(one->at)) {
            return nullptr;
        }
    }
    return one;
}

task<result<session_info>> live_registry::inspect(std::string id, bool usage) {
    const auto one = find_listed(id);
    if (!one) {
        co_return no_such(id);
    }
    std::optional<usage_sample> sampled;
    if (usage) {
        sampled = co_await sample(one);
        if (find_listed(id) != one) { // closed while its usage was sampled (contract 1.5.1)
            co_return no_such(id);
        }
    }
    auto info = one->describe(on_.clock);
    info.usage = sampled;
    co_return info;
}

/// Cached, "no sample" included (contract 2.15).
task<std::optional<usage_sample>> live_registry::sample(session_ptr one) {
    std::shared_ptr<sandbox> box;
    {
        const std::lock_guard lock(one->mutex);
        if (!one->alive()) {
            co_return std::nullopt;
        }
        if (one->sampled && on_.clock.steady() - one->sampled->first < on_.waits.usage_cache) {
            co_return one->sampled->second;
        }
        box = one->box;
    }
    auto answer = co_await bounded<result<usage_sample>>(calls_, box, box->usage(),
                                                         std::chrono::steady_clock::now() + on_.waits.usage);
    std::optional<usage_sample> sampled;
    if (answer && *answer) {
        sampled = **answer;
    }
    const std::lock_guard lock(one->mutex);
    one->sampled.emplace(on_.clock.steady(), sampled);
    co_return sampled;
}

/// One listing's samples; alive as long as anybody writes to it.
struct live_registry::samples {
    explicit samples(std::size_t size) : all(size) {}
    std::vector<std::optional<usage_sample>> all;
    std::atomic<std::size_t> left{0};
    std::shared_ptr<core::shared_event> done;

    void one_less() {
        const auto event = done;
        if (--left == 0) {
            event->set();
        }
    }
};

task<void> live_registry::sample_into(session_ptr one, std::shared_ptr<samples> out, std::size_t at) {
    out->all[at] = co_await sample(std::move(one));
    out->one_less();
}

task<listing> live_registry::list(bool usage) {
    // Together, but not ten thousand at a time.
    constexpr std::size_t group = 256;
    const auto everyone = shards_.all();
    auto sampled = std::make_shared<samples>(everyone.size());
    for (std::size_t first = 0; usage && first < everyone.size(); first += group) {
        const auto last = std::min(first + group, everyone.size());
        sampled->done = std::make_shared<core::shared_event>();
        sampled->left = last - first;
        for (std::size_t i = first; i < last; ++i) {
            const auto strand = boost::asio::make_strand(on_.context.get_executor());
            if (!core::spawn(strand, "a usage sample", calls_, sample_into(everyone[i], sampled, i))) {
                sampled->one_less();
            }
        }
        co_await sampled->done->wait();
    }
    listing answer;
    const auto policy = policy_.get();
    answer.limit = policy->max_sessions;
    answer.open_limit = policy->max_open_sessions;
    answer.tenant_limit = policy->max_sessions_per_tenant;
    answer.sessions.reserve(everyone.size());
    for (std::size_t i = 0; i < everyone.size(); ++i) {
        {
            const std::lock_guard lock(everyone[i]->mutex);
            if (!is_listed(everyone[i]->at)) {
                continue;
            }
        }
        answer.sessions.push_back(everyone[i]->describe(on_.clock));
        answer.sessions.back().usage = sampled->all[i];
    }
    co_return answer;
}

task<result<event_page>> live_registry::events(std::string id, std::int64_t after) {
    const auto one = find_listed(id);
    if (!one) {
        co_return no_such(id);
    }
    {
        const std::lock_guard lock(one->mutex);
        if (!one->log.partial()) {
            co_return one->log.after(after);
        }
    }
    auto stored = co_await on_.store.events(one->record.order);
    if (!stored) {
        co_return stored.error();
    }
    if (find_listed(id) != one) { // closed meanwhile (contract 1.5.2)
        co_return no_such(id);
    }
    const std::lock_guard lock(one->mutex);
    co_return one->log.after(after, std::move(*stored));
}

health live_registry::health_numbers() const {
    health now;
    now.sessions = admission_.resident();
    const auto policy = policy_.get();
    now.limit = policy->max_sessions;
    now.open_sessions = admission_.open();
    now.open_limit = policy->max_open_sessions;
    now.runtimes = on_.runtimes.aliases;
    now.running_commands = static_cast<std::int64_t>(queue_.running());
    now.quarantined = quarantined_;
    now.degraded = on_.builder.degraded();
    return now;
}

} // namespace sandboxd::session
