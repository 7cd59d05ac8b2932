#include "api/admission.hpp"
#include "api/handlers.hpp"
#include "api/shown.hpp"

// What the service says of itself (contract 1.3, 1.4.1).

namespace sandboxd::api {

task<void> index(call& c) {
    const wire::service_index answer{
        .health = shown(c.on.sessions.health_numbers()), .ui_url = std::nullopt, .endpoints = c.on.endpoints};
    co_await c.x.answer().send(http::json_reply(200, wire::to_json(answer)));
}

task<void> health(call& c) {
    const auto answer = shown(c.on.sessions.health_numbers());
    co_await c.x.answer().send(http::json_reply(200, wire::to_json(answer)));
}

task<void> policy(call& c) {
    if (!co_await admit_service(c, false, read_nothing)) {
        co_return;
    }
    auto answer = shown(*c.on.sessions.policy());
    answer.not_enforced = c.on.not_enforced;
    co_await c.x.answer().send(http::json_reply(200, wire::to_json(answer)));
}

} // namespace sandboxd::api
