// Finding sandboxes again after a restart (design.md, "Nothing is lost on a crash").

#include "core/deadline.hpp"
#include "core/log.hpp"
#include "core/spawn.hpp"
#include "session/adoption.hpp"
#include "session/bounded.hpp"

#include <algorithm>
#include <utility>

namespace sandboxd::session {

/// Nothing when the builder has not answered in time.
task<std::optional<result<std::shared_ptr<sandbox>>>> live_registry::look_for(slot_record slot) {
    co_return co_await bounded<result<std::shared_ptr<sandbox>>>(
        calls_, nullptr, on_.builder.adopt(std::move(slot)),
        std::chrono::steady_clock::now() + on_.waits.adopt);
}

void live_registry::take_in(const session_ptr& one, std::shared_ptr<sandbox> box) {
    if (box->inherited_commands() != 0) {
        core::spawn(boost::asio::make_strand(on_.context.get_executor()), "commands from before", lives_,
                    count_inherited(box));
    }
    const std::lock_guard lock(one->mutex);
    one->box = std::move(box);
    one->unsure = false;
}

task<void> live_registry::adopt_all(std::shared_ptr<adoption> work) {
    constexpr std::size_t at_once = 32;
    if (work->all.empty()) {
        co_return;
    }
    work->workers = std::min(at_once, work->all.size());
    for (std::size_t i = work->workers; i > 0; --i) {
        core::spawn(boost::asio::make_strand(on_.context.get_executor()), "adopting sandboxes", lives_,
                    adopt_some(work));
    }
    co_await work->done.wait();
}

task<void> live_registry::adopt_some(std::shared_ptr<adoption> work) {
    for (;;) {
        std::pair<session_ptr, slot_record> mine;
        {
            const std::lock_guard lock(work->mutex);
            if (work->next == work->all.size()) {
                if (--work->workers == 0) {
                    work->done.set();
                }
                co_return;
            }
            mine = work->all[work->next++];
        }
        const auto& [one, slot] = mine;
        auto box = co_await look_for(slot);
        const bool answered = box && (*box || box->error().code == errc::gone);
        if (!one || one->at == phase::hibernated) {
            if (box && *box) { // its stop was cut off by the end of the service
                co_await stop_box(std::move(**box), slot, leaving_slot::kept);
            }
            continue;
        }
        if (box && *box) {
            take_in(one, std::move(**box));
            watch_death(one);
        } else {
            core::log::warning("the sandbox of session {} was not found again: {}", one->record.id,
                               box ? box->error().message : "no answer");
            const std::lock_guard lock(one->mutex);
            one->unsure = !answered;
        }
        const std::lock_guard lock(work->mutex);
        work->found += box && *box ? 1 : 0;
        work->unsure += answered ? 0 : 1;
    }
}

/// Those that did not answer at start, until each has been found, has turned out to be gone, or its session
/// has gone another way.
task<void> live_registry::look_again() {
    for (bool more = true; more && !stopping_;) {
        if (!co_await core::sleep_for(on_.waits.adopt_again)) {
            co_return;
        }
        more = false;
        for (const auto& one : shards_.unsorted()) {
            std::shared_ptr<job> moving;
            {
                const std::lock_guard lock(one->mutex);
                if (stopping_ || !one->unsure || !one->step(trigger::heal_started)) {
                    continue;
                }
                moving = one->moving = std::make_shared<job>();
            }
            const bool found = co_await find_again(one);
            if (found) {
                watch_death(one);
            }
            {
                const std::lock_guard lock(one->mutex);
                one->step(found ? trigger::healed : trigger::heal_failed);
                one->moving.reset();
                more = more || one->unsure;
            }
            // Who waits for a sandbox and got none asks for a new one.
            moving->finish(result<void>());
        }
    }
}

/// Commands of an earlier service hold places like any other until they end (design.md "Decided" 21).
task<void> live_registry::count_inherited(std::shared_ptr<sandbox> box) {
    constexpr std::chrono::milliseconds look_again{100};
    std::vector<command_queue::place> places;
    for (auto running = box->inherited_commands(); running != 0 && box->alive() && !stopping_;
         running = box->inherited_commands()) {
        while (places.size() > running) {
            places.pop_back();
        }
        while (places.size() < running) {
            places.push_back(queue_.enter());
        }
        if (!co_await core::sleep_for(look_again)) {
            co_return;
        }
    }
}

} // namespace sandboxd::session
