#include "api/admission.hpp"
#include "api/answer.hpp"
#include "api/errors.hpp"
#include "api/handlers.hpp"
#include "api/shown.hpp"
#include "core/event.hpp"
#include "router/query.hpp"
#include "wire/params.hpp"
#include "wire/requests.hpp"

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/this_coro.hpp>

#include <chrono>

// Sessions: open, list, inspect, close (contract 1.4.3, 1.4.4, 1.5.1, 1.5.3) and their events (1.5.2).

namespace sandboxd::api {

namespace {

/// Between the interim answers that keep a client waiting for a slow open (contract N16.20).
constexpr std::chrono::seconds waiting_interval{10};

/// Reads the flag of the route's query, false where it is absent.
reader flag_into(bool& value, const call& c) {
    return [&value, &c](const wire::parsed_body&, wire::fault_list& faults) {
        const router::query query(c.route.query);
        const auto name = c.told.query->name;
        value = wire::read_query_flag(name, query.get(name), false, faults).value_or(false);
    };
}

session::open_request request_of(wire::open_body body) {
    return {.session_id = std::move(body.session_id),
            .runtime = std::move(body.runtime),
            .tenant = std::move(body.tenant),
            .reuse = body.reuse,
            .attach = body.attach};
}

using open_answer = std::optional<result<session::opened>>;

task<void> open_then_tell(session::registry& sessions, session::open_request request, open_answer& answer,
                          core::event& done) {
    answer.emplace(co_await sessions.open(std::move(request)));
    done.set();
}

task<void> say_that_it_lasts(http::responder& to, core::event& done) {
    while (!co_await done.wait_for(waiting_interval)) {
        co_await to.interim(102);
    }
}

task<void> send_failure(call& c, const error& failure) {
    co_await c.x.answer().send(reply_of(failure));
}

} // namespace

task<void> open_session(call& c) {
    using namespace boost::asio::experimental::awaitable_operators;
    std::optional<wire::open_body> asked;
    if (!co_await admit_service(c, body_into(c, asked))) {
        co_return;
    }
    open_answer answer;
    core::event done(co_await boost::asio::this_coro::executor);
    auto opening = open_then_tell(c.on.sessions, request_of(std::move(*asked)), answer, done);
    auto patience = say_that_it_lasts(c.x.answer(), done);
    co_await (std::move(opening) && std::move(patience));
    const auto& opened = *answer;
    if (!opened) {
        co_await send_failure(c, opened.error());
        co_return;
    }
    const wire::session_created created{.session = shown(opened->session), .token = opened->token};
    co_await answer_with(c, created);
    if (c.x.answer().gone()) {
        c.on.sessions.undelivered(*opened);
    }
}

task<void> list_sessions(call& c) {
    bool usage = false;
    if (!co_await admit_service(c, flag_into(usage, c))) {
        co_return;
    }
    const auto listing = co_await c.on.sessions.list(usage);
    wire::session_list answer{.sessions = {},
                              .limit = listing.limit,
                              .open_limit = listing.open_limit,
                              .tenant_limit = listing.tenant_limit};
    answer.sessions.reserve(listing.sessions.size());
    for (const auto& one : listing.sessions) {
        answer.sessions.push_back(shown(one));
    }
    co_await answer_with(c, answer);
}

task<void> inspect_session(call& c) {
    bool usage = false;
    if (!co_await admit_session(c, flag_into(usage, c))) {
        co_return;
    }
    const auto found = co_await c.on.sessions.inspect(c.session_id(), usage);
    if (!found) {
        co_await send_failure(c, found.error());
        co_return;
    }
    co_await answer_with(c, shown(*found));
}

task<void> close_session(call& c) {
    bool purge = false;
    if (!co_await admit_session(c, flag_into(purge, c))) {
        co_return;
    }
    const auto closed = co_await c.on.sessions.close(c.session_id(), purge);
    if (!closed) {
        co_await send_failure(c, closed.error());
        co_return;
    }
    co_await answer_with_nothing(c);
}

task<void> list_events(call& c) {
    std::int64_t after = 0;
    const auto read_after = [&after, &c](const wire::parsed_body&, wire::fault_list& faults) {
        const router::query query(c.route.query);
        const auto name = c.told.query->name;
        after = wire::read_query_integer(name, query.get(name), 0, 0, faults).value_or(0);
    };
    if (!co_await admit_session(c, read_after)) {
        co_return;
    }
    const auto page = co_await c.on.sessions.events(c.session_id(), after);
    if (!page) {
        co_await send_failure(c, page.error());
        co_return;
    }
    wire::session_events answer{.events = {}, .latest_seq = page->latest_seq};
    for (const auto& one : page->events) {
        answer.events.push_back(shown(one));
    }
    co_await answer_with(c, answer);
}

} // namespace sandboxd::api
