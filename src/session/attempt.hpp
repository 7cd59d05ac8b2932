#pragma once

#include "core/random.hpp"
#include "core/spawn.hpp"
#include "session/bounded.hpp"
#include "session/live_registry.hpp"

#include <algorithm>
#include <utility>

namespace sandboxd::session {

/// A command's way to its answer: a live sandbox, its turn, the operation. What was certainly not started is
/// tried again in a healed sandbox (N16.3), a fixed number of times. Included by commands.cpp only.
template <class T>
task<live_registry::ran<T>> live_registry::attempt(session_ptr one, std::shared_ptr<ticket> mine,
                                                   client_probe client, window times, bool for_run,
                                                   operation<T> what) {
    constexpr int tries = 3;
    std::optional<command_queue::place> place;
    bool waited = false;
    for (int i = 0; i < tries; ++i) {
        // Healing comes before the turn: a sandbox that takes long to start holds no place.
        waited = waited || !is_alive(*one);
        auto box = co_await obtain(one, mine, for_run, times.give_up);
        if (!box) {
            co_return ran<T>{fate_of(*mine), box.error(), false};
        }
        one->touch(on_.clock);
        if (!place) {
            place.emplace(queue_.enter());
            waited = waited || place->wake() != nullptr;
            if (const auto how = co_await wait_turn(*place, mine, times.deadline); how != fate::answered) {
                co_return ran<T>{how, error{}, false};
            }
        }
        if (waited && client && !co_await std::exchange(client, {})()) {
            co_return ran<T>{fate::left, error{}, false};
        }
        if (!(*box)->alive()) {
            continue;
        }
        if (!mine->start()) {
            co_return ran<T>{fate_of(*mine), error{}, false};
        }
        const auto left =
            std::chrono::ceil<std::chrono::milliseconds>(times.deadline - std::chrono::steady_clock::now());
        if (left.count() <= 0) {
            co_return ran<T>{fate::late, error{}, false};
        }
        one->touch(on_.clock);
        mark_dirty(one);
        // Only a close gives up on a command that has started; a stop ends it through the sandbox.
        auto wake_by = [mine](std::function<void()> wake) {
            mine->wake_by([mine = mine.get(), wake = std::move(wake)] {
                if (mine->closing()) {
                    wake();
                }
            });
        };
        auto answer =
            co_await bounded<result<T>>(calls_, *box, what(**box, left), times.give_up, std::move(wake_by));
        mine->wake_by({});
        // The close may have ended the sandbox before this one noticed the close.
        const bool ended_by_close =
            mine->closing() && answer && answer->has_error() && answer->error().code == errc::gone;
        if (!answer || ended_by_close) {
            if (!mine->closing()) {
                stop_behind(*box, mine->id_inside());
            }
            co_return ran<T>{mine->closing() ? fate::closed : fate::overdue, error{}, true};
        }
        if (answer->has_error() && answer->error().code == errc::gone && !answer->error().may_have_started) {
            continue;
        }
        if (answer->has_error() && answer->error().code == errc::busy) {
            mine->call_inside(core::random_hex(16));
            continue;
        }
        co_return ran<T>{fate::answered, std::move(*answer), true};
    }
    co_return ran<T>{fate::answered, error{errc::gone, "The sandbox keeps dying"}, true};
}

} // namespace sandboxd::session
