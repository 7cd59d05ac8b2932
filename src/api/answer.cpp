#include "api/answer.hpp"

#include <stdexcept>
#include <utility>

namespace sandboxd::api {

namespace {

task<void> send(call& c, http::reply reply) {
    if (c.told.large) {
        if (auto room = co_await c.x.hold(reply.body.size()); !room) {
            co_await http::refuse(c.x, room.error());
            co_return;
        }
    }
    co_await c.x.answer().send(std::move(reply));
}

} // namespace

void expect_to_answer(const call& c, openapi::content::kind kind, const std::type_info* model) {
    const auto& told = c.told.answers;
    if (told.of != kind || (model != nullptr && *told.model != *model)) {
        throw std::logic_error("not told what it answers: " + std::string(c.told.id));
    }
}

task<void> answer_with_json(call& c, std::string json, bool truncated) {
    auto reply = http::json_reply(200, std::move(json));
    if (truncated) {
        reply.headers.emplace_back("X-Sandbox-Truncated", "true");
    }
    co_await send(c, std::move(reply));
}

task<void> answer_by_worker(call& c, std::function<std::string()> print, bool truncated) {
    co_await answer_with_json(c, co_await c.on.workers.run(std::move(print)), truncated);
}

task<void> answer_with_bytes(call& c, std::string bytes) {
    expect_to_answer(c, openapi::content::kind::bytes, nullptr);
    http::reply reply{
        .status = 200, .headers = {{"Content-Type", "application/octet-stream"}}, .body = std::move(bytes)};
    co_await send(c, std::move(reply));
}

task<void> answer_with_nothing(call& c) {
    expect_to_answer(c, openapi::content::kind::none, nullptr);
    http::reply done{.status = 204, .headers = {}, .body = {}};
    co_await c.x.answer().send(std::move(done));
}

} // namespace sandboxd::api
