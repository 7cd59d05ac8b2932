// The policy while the service runs (contract 1.4.2, 2.14). Three layers: what the service was started with,
// what the overrides file has said, and on top what PUT /policy has set, which the store keeps.

#include "config/policy.hpp"

#include "core/log.hpp"
#include "session/live_registry.hpp"
#include "session/overrides_file.hpp"

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

#include <utility>

namespace sandboxd::session {

result<settings> live_registry::with(const policy_change& file, const policy_change& put) const {
    policy_change all = file;
    config::merge(all, put);
    auto made = config::apply(on_.config, all);
    if (!made) {
        return made.error();
    }
    return std::move(made->values);
}

/// What can't be applied any more must not keep the service from starting: it is said and left out.
task<void> live_registry::load_policy(std::optional<std::string> stored) {
    if (on_.config.policy_overrides) {
        co_await poll_overrides();
    }
    if (!stored) {
        co_return;
    }
    auto put = on_.policy.parse(*stored);
    auto next = put ? with(from_file_, *put) : result<settings>(put.error());
    if (!next) {
        core::log::warning("what PUT /policy has set before is not in force, DELETE /policy forgets it: {}",
                           next.error().message);
        co_return;
    }
    core::log::info("set by PUT /policy and in force until DELETE /policy: {}",
                    fmt::join(config::names_of(*put), ", "));
    policy_.set(std::move(*next));
    const std::lock_guard lock(overrides_mutex_);
    from_put_ = std::move(*put);
}

std::vector<std::string> live_registry::policy_overrides() const {
    const std::lock_guard lock(overrides_mutex_);
    return config::names_of(from_put_);
}

task<result<void>> live_registry::change_policy(policy_change change) {
    const auto mine = co_await policy_turns_.take();
    // What really changes is told by the settings in force, and so is a change that can't be.
    auto told = config::apply(*policy_.get(), change);
    policy_change put = from_put_;
    config::merge(put, change);
    auto next = with(from_file_, put);
    if (!next) {
        co_return next.error();
    }
    if (put == from_put_) {
        co_return result<void>();
    }
    std::vector<store::change> record{store::put_policy{on_.policy.print(put)}};
    if (auto kept = co_await on_.store.commit(std::move(record)); !kept) {
        core::log::error("the policy could not be recorded: {}", kept.error().message);
        co_return error{errc::internal, "The policy could not be recorded"};
    }
    policy_.set(std::move(*next));
    if (told && !told->changed.empty()) {
        core::log::info("the policy is changed: {}", fmt::join(told->changed, ", "));
    }
    const std::lock_guard lock(overrides_mutex_);
    from_put_ = std::move(put);
    co_return result<void>();
}

task<result<void>> live_registry::forget_policy() {
    const auto mine = co_await policy_turns_.take();
    std::vector<store::change> record{store::put_policy{std::nullopt}};
    if (auto kept = co_await on_.store.commit(std::move(record)); !kept) {
        core::log::error("the policy could not be recorded: {}", kept.error().message);
        co_return error{errc::internal, "The policy could not be recorded"};
    }
    auto next = with(from_file_, {});
    policy_.set(next ? std::move(*next) : on_.config);
    core::log::info("what PUT /policy has set is forgotten");
    const std::lock_guard lock(overrides_mutex_);
    from_put_ = {};
    co_return result<void>();
}

/// Within a turn. Whatever is wrong with the file, the policy stays as it was.
void live_registry::take_overrides(const result<std::string>& text) {
    const auto& path = *on_.config.policy_overrides;
    auto change = text ? on_.policy.parse(*text) : result<policy_change>(text.error());
    if (!change) {
        core::log::warning("the overrides file {} is not applied: {}", path, change.error().message);
        return;
    }
    const auto told = config::apply(*policy_.get(), *change);
    policy_change file = from_file_;
    config::merge(file, *change);
    auto next = with(file, from_put_);
    if (!next) {
        core::log::warning("the overrides file {} is not applied: {}", path, next.error().message);
        return;
    }
    policy_.set(std::move(*next));
    if (told && !told->changed.empty()) {
        core::log::info("the overrides file {} says: {}", path, fmt::join(told->changed, ", "));
    }
    const std::lock_guard lock(overrides_mutex_);
    from_file_ = std::move(file);
}

/// Read once, and again when it has changed; a file that is gone reverts nothing.
task<void> live_registry::poll_overrides() {
    if (!on_.config.policy_overrides) {
        co_return;
    }
    const auto mine = co_await policy_turns_.take();
    auto found = co_await on_.workers.run([path = *on_.config.policy_overrides, seen = overrides_seen_] {
        return blocking::read_overrides(path, seen);
    });
    if (found) {
        overrides_seen_ = std::move(found->state);
        take_overrides(found->text);
    }
}

} // namespace sandboxd::session
