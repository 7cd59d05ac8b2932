#include "api/admission.hpp"
#include "api/answer.hpp"
#include "api/errors.hpp"
#include "api/handlers.hpp"
#include "api/shown.hpp"
#include "wire/policy.hpp"

// What the service says of itself (contract 1.3, 1.4.1).

namespace sandboxd::api {

namespace {
wire::service_health health_of(const call& c) {
    auto answer = shown(c.on.sessions.health_numbers());
    if (c.on.facts.warming) {
        answer.warming = shown(c.on.facts.warming());
    }
    return answer;
}
} // namespace

task<void> index(call& c) {
    const wire::service_index answer{
        .health = health_of(c), .ui_url = std::nullopt, .endpoints = c.on.endpoints};
    co_await answer_with(c, answer);
}

task<void> health(call& c) {
    const auto answer = health_of(c);
    co_await answer_with(c, answer);
}

namespace {
/// The whole policy, or why it could not be changed.
task<void> answer_with_policy(call& c, result<void> done) {
    if (!done) {
        co_await c.x.answer().send(reply_of(done.error()));
        co_return;
    }
    auto answer = shown(*c.on.sessions.policy());
    answer.buildkit = c.on.facts.buildkit;
    answer.not_enforced = c.on.facts.not_enforced;
    answer.overridden = c.on.sessions.policy_overrides();
    co_await answer_with(c, answer);
}
} // namespace

task<void> policy(call& c) {
    if (co_await admit_service(c, read_nothing)) {
        co_await answer_with_policy(c, result<void>());
    }
}

task<void> change_policy(call& c) {
    std::optional<wire::policy_change_body> asked;
    if (!co_await admit_service(c, body_into(c, asked))) {
        co_return;
    }
    co_await answer_with_policy(c, co_await c.on.sessions.change_policy(std::move(*asked)));
}

task<void> forget_policy(call& c) {
    if (co_await admit_service(c, read_nothing)) {
        co_await answer_with_policy(c, co_await c.on.sessions.forget_policy());
    }
}

} // namespace sandboxd::api
