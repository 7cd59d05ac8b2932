#pragma once

#include "session/bounded.hpp"
#include "session/live_registry.hpp"
#include "session/path_turn.hpp"
#include "session/refusals.hpp"
#include "session/registered.hpp"

#include <spdlog/fmt/fmt.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace sandboxd::session {

/// One operation on files, from its request to its answer or refusal.
struct live_registry::file_call {
    std::string_view name; ///< "read", as the event log has it
    std::string id;
    std::string target; ///< as the event log shows it
    session_ptr of;     ///< null until begin()
    time_point arrived;
    time_point give_up; ///< the service's ceiling
};

/// What the sandbox answered; `refused` instead when there is a status for it.
template <class T>
struct live_registry::file_outcome {
    std::optional<error> refused;
    result<T> answer = error{};
};

/// Finds the session; an error when there is none.
inline result<void> live_registry::begin(file_call& call) {
    call.of = find_listed(call.id);
    if (!call.of) {
        return no_such(call.id);
    }
    if (stopping_) {
        return leaving();
    }
    call.arrived = std::chrono::steady_clock::now();
    call.give_up = call.arrived + std::chrono::seconds(policy()->execute_timeout);
    return {};
}

inline void live_registry::log(const file_call& call, bool ok, std::string_view detail) {
    record(call.of, call.name, call.target, ok, detail, call.arrived);
}

inline error live_registry::past_ceiling(const file_call& call) {
    log(call, false, "");
    return {errc::timeout, fmt::format("The operation outlasted the service ceiling of {} seconds",
                                       policy()->execute_timeout)};
}

/// Failures that are not about a file, whatever the operation.
inline bool is_refusal(errc code) {
    return code == errc::unsupported || code == errc::internal;
}

/// A live sandbox, then the operation; what was certainly not started is tried again in a healed one, a fixed
/// number of times (N16.3). `held` lives until the operation has ended, even one that was given up.
template <class T>
task<live_registry::file_outcome<T>> live_registry::ask(file_call& call, std::shared_ptr<ticket> mine,
                                                        std::shared_ptr<const void> held,
                                                        file_operation<T> what) {
    constexpr int tries = 3;
    const auto one = call.of;
    file_outcome<T> out;
    out.answer = error{errc::gone, "The sandbox keeps dying"};
    for (int i = 0; i < tries; ++i) {
        auto box = co_await obtain(one, mine, false, call.give_up);
        if (!box && !mine->closing()) {
            if (box.error().code == errc::timeout) {
                out.refused = past_ceiling(call);
            } else {
                out.refused = box.error();
            }
            co_return out;
        }
        if (!mine->start()) {
            out.answer = was_closed(one->record.id);
            co_return out;
        }
        one->touch(on_.clock);
        mark_dirty(one);
        auto wake_by = [mine](std::function<void()> wake) { mine->wake_by(std::move(wake)); };
        auto kept =
            std::make_shared<std::pair<std::shared_ptr<sandbox>, std::shared_ptr<const void>>>(*box, held);
        auto answer =
            co_await bounded<result<T>>(calls_, kept, what(**box), call.give_up, std::move(wake_by));
        mine->wake_by({});
        if (mine->closing()) {
            // Even when it was answered: by a sandbox that was being stopped.
            out.answer = answer && answer->has_value() ? std::move(*answer) : was_closed(one->record.id);
            co_return out;
        }
        if (!answer) {
            out.refused = past_ceiling(call);
            co_return out;
        }
        if (answer->has_error()) {
            const error& why = answer->error();
            if (why.code == errc::gone && !why.may_have_started) {
                continue;
            }
            if (is_refusal(why.code)) {
                out.refused = why;
                co_return out;
            }
        }
        out.answer = std::move(*answer);
        co_return out;
    }
    co_return out;
}

/// For operations that change nothing.
template <class T>
task<live_registry::file_outcome<T>> live_registry::look(file_call& call, file_operation<T> what) {
    file_outcome<T> out;
    auto place = registered::enter(call.of, next_file_call());
    if (!place) {
        out.refused = place.error();
        co_return out;
    }
    out = co_await ask<T>(call, place->mine(), nullptr, std::move(what));
    co_return out;
}

/// For those that change the file at `path`: one after the other.
template <class T>
task<live_registry::file_outcome<T>> live_registry::change(file_call& call, std::string path,
                                                           file_operation<T> what) {
    file_outcome<T> out;
    auto place = registered::enter(call.of, next_file_call());
    if (!place) {
        out.refused = place.error();
        co_return out;
    }
    const auto mine = place->mine();
    auto held = std::make_shared<path_turn>(call.of, lock_key(policy()->work_dir, path));
    if (!co_await wait_for_turn(held, mine, call.give_up) && !mine->closing()) {
        out.refused = past_ceiling(call);
        co_return out;
    }
    out = co_await ask<T>(call, mine, held, std::move(what));
    co_return out;
}

} // namespace sandboxd::session
