#include "api/answer.hpp"
#include "api/handlers.hpp"
#include "api/routes.hpp"
#include "openapi/document.hpp"
#include "openapi/page.hpp"

// What the service says of its routes (contract 1.3.4), for anybody.

namespace sandboxd::api {

task<void> openapi_document(call& c) {
    expect_to_answer(c, openapi::content::kind::document, nullptr);
    static const std::string text = openapi::document_text(described_routes());
    auto reply = http::json_reply(200, text);
    reply.headers.emplace_back("Cache-Control", "no-cache");
    co_await c.x.answer().send(std::move(reply));
}

task<void> docs_page(call& c) {
    expect_to_answer(c, openapi::content::kind::html, nullptr);
    const auto& page = openapi::docs_page();
    http::reply reply{.status = 200,
                      .headers = {{"Content-Type", "text/html; charset=utf-8"},
                                  {"Content-Security-Policy", page.policy},
                                  {"X-Content-Type-Options", "nosniff"},
                                  {"Referrer-Policy", "no-referrer"},
                                  {"Cache-Control", "no-cache"}},
                      .body = std::string(page.html)};
    co_await c.x.answer().send(std::move(reply));
}

} // namespace sandboxd::api
